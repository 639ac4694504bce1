"""The emulator's own process: MiniStack with four of its habits changed. Started by `local.emulator` only.

With `--keep HOME` it goes on with the data that is kept there, and saves its own.
"""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ministack.app import main
from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from local.keep import keep

# After every call the emulator waits 50 ms for log lines that may still come. Ours have arrived by then: a call
# takes 8 ms instead of 58 ms with these, and a late line is kept and shown with the next call.
FIRST_LINE_SECONDS = 0.001
IDLE_SECONDS = 0.001


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


def serve_groups_side_by_side() -> None:
    """One message a batch cannot mix groups, so the groups of a FIFO queue need not wait for each other.

    The emulator runs one batch of a FIFO queue at a time, whatever its size: a slow target would hold up the others.
    """
    concurrency = lambda_svc._sqs_esm_concurrency  # noqa: SLF001

    def grouped(esm: Any, function: Any, config: Any, queue: Any = None) -> Any:
        alone = esm.get("BatchSize") == 1
        return concurrency(esm, function, config, None if alone else queue)

    lambda_svc._sqs_esm_concurrency = grouped  # noqa: SLF001


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
    serve_groups_side_by_side()
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        main()
    finally:
        # The emulator leaves its Lambda processes and their folders behind.
        lambda_runtime.reset()
