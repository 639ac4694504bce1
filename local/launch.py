"""The emulator's own process: MiniStack with eight of its habits changed. Started by `local.emulator` only.

With `--keep HOME` it goes on with the data that is kept there, and saves its own.
"""

import argparse
import compileall
import hashlib
import os
import signal
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from ministack.app import main
from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from local.gateways import pass_bytes_on, unpack_as_rest_apis_do
from local.keep import keep
from local.sources import read_side_by_side

# After every call the emulator waits 50 ms for log lines that may still come. Ours have arrived by then: a call
# takes 8 ms instead of 58 ms with these, and a late line is kept and shown with the next call.
FIRST_LINE_SECONDS = 0.001
IDLE_SECONDS = 0.001
SWITCH_SECONDS = 0.0005
"""How long a thread keeps the others waiting. One thread of many answers all calls of AWS: with Python's own 5 ms, an
answer that meets a busy thread waits longer than it takes."""
READERS = max(8, 4 * (os.cpu_count() or 1))
"""Of one queue, at the same time."""


def shorten_log_wait() -> None:
    wait = lambda_runtime.Worker._drain_stderr_bounded  # noqa: SLF001
    names = wait.__code__.co_varnames[1 : wait.__code__.co_argcount]
    if names != ("first_line_wait", "idle_confirm", "hard_cap"):
        print("MiniStack's log wait has changed; leaving it alone.", file=sys.stderr)
        return
    wait.__defaults__ = (FIRST_LINE_SECONDS, IDLE_SECONDS, 0.25)


def contain_failures() -> None:
    """A function process that dies takes no other with it.

    When one breaks while it starts, the emulator ends every process of that function, also those at work or just
    starting, whose failures then do the same: under load it never recovers. On AWS only the one environment goes.
    """
    invoke = lambda_runtime.Worker.invoke

    def contained(self: Any, *arguments: Any, **settings: Any) -> Any:
        try:
            return invoke(self, *arguments, **settings)
        except Exception as error:  # noqa: BLE001
            broken, self._proc = self._proc, None
            if broken is not None:
                broken.kill()
                broken.wait()
            return {"status": "error", "error": str(error), "cold_start": True, "log": ""}

    lambda_runtime.Worker.invoke = contained


class LayerOnce(zipfile.ZipFile):
    """A layer's archive, of which every process gets a link to the one unpacked copy."""

    _unpacked: ClassVar[dict[str, Path]] = {}
    _alone = threading.Lock()

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        if not Path(str(self.filename)).name.startswith("layer_"):
            super().extractall(path, members, pwd)
            return
        digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
        with self._alone:
            if digest not in self._unpacked:
                copy = Path(tempfile.mkdtemp(prefix="layer-"))
                super().extractall(copy)
                compileall.compile_dir(copy, quiet=2)
                self._unpacked[digest] = copy
        place = Path(str(path))
        place.rmdir()
        place.symlink_to(self._unpacked[digest], target_is_directory=True)


def unpack_layers_once() -> None:
    """Lambda shows a layer to every process of a function; the emulator unpacks, and Python compiles, it for each.

    That took a fifth of what starting one costs, and most of it in the emulator's own process, where all else waits.
    """
    if lambda_runtime.zipfile is not zipfile:
        print("MiniStack no longer unpacks with zipfile; leaving it alone.", file=sys.stderr)
        return
    names = {**vars(zipfile), "ZipFile": LayerOnce}
    lambda_runtime.zipfile = SimpleNamespace(**names)


def bound_readers_of_queues() -> None:
    """As many processes of a function as the cores can start: the template's numbers are meant for AWS.

    Fifty that start at once on two cores take longer than a function may run, are ended for it, and start again.
    """
    concurrency = lambda_svc._sqs_esm_concurrency  # noqa: SLF001

    def bounded(*arguments: Any, **settings: Any) -> int:
        return int(min(READERS, concurrency(*arguments, **settings)))

    lambda_svc._sqs_esm_concurrency = bounded  # noqa: SLF001


def end_with_parent() -> None:
    """Whoever started us holds the other end of our standard input: when it closes, its holder is gone."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="local.launch", description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="HOME", help="the folder whose saves it reads and writes")
    # The emulator looks at the arguments too.
    home, sys.argv = parser.parse_args().keep, sys.argv[:1]
    if home is not None:
        keep(home, Path(os.environ["S3_DATA_DIR"]).parent, int(os.environ["GATEWAY_PORT"]))
    shorten_log_wait()
    contain_failures()
    unpack_layers_once()
    bound_readers_of_queues()
    read_side_by_side()
    pass_bytes_on()
    unpack_as_rest_apis_do()
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        main()
    finally:
        # The emulator leaves its Lambda processes and their folders behind.
        lambda_runtime.reset()
