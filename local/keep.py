"""Keep: the emulator's state on disk, so that the next run goes on with it. Runs in the emulator's own process.

A save is written by a copy of the process, made between two requests: it shows one moment, in which every answered
request is done, and nobody waits for it. The objects of the bucket are files already; they are linked in that moment.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ministack import app
from ministack.core import lambda_runtime, persistence

from local import saves

BEGIN = signal.SIGUSR1
EVERY_SECONDS = 30.0
LOOK_SECONDS = 0.2
MOST_SECONDS = 120.0
"""A copy that takes longer hangs, and is ended."""

LOST_POSITIONS = "dynamodb_stream_positions"
"""Stream records are not kept. With positions from before, their readers would wait until as many came again."""


@dataclass
class Keeper:
    """Everything in it runs on the emulator's loop, so between two requests."""

    home: Path
    state: Path
    port: int
    loop: asyncio.AbstractEventLoop
    copy: int | None = None
    """The process that writes a save now."""
    begun: float = 0.0
    saved: bool = False
    """Whether the last one was written to its end."""

    def begin(self) -> None:
        try:
            self.copy, self.begun = self._fork(), time.monotonic()
        except OSError as error:
            _report(error)
            self.loop.call_later(EVERY_SECONDS, self.begin)
        else:
            self.loop.call_later(LOOK_SECONDS, self.look)

    def look(self) -> None:
        """Has the save been written?"""
        if not self._ended():
            self.loop.call_later(LOOK_SECONDS, self.look)
            return
        # A large hub is saved less often, so that saving stays a small part of what the machine does.
        self.loop.call_later(max(EVERY_SECONDS, 20 * (time.monotonic() - self.begun)), self.begin)

    def stop(self) -> NoReturn:
        """Save, and be gone. Nobody gets an answer after the moment that is saved, because the loop stands still."""
        self._wait()
        try:
            self.copy, self.begun = self._fork(), time.monotonic()
            saved = self._wait()
        except OSError as error:
            _report(error)
            saved = False
        lambda_runtime.reset()
        os._exit(0 if saved else 1)

    def _fork(self) -> int:
        folder = saves.draft(self.home)
        saves.link(self.state / saves.OBJECTS, folder / saves.OBJECTS)
        copy = os.fork()
        if copy == 0:
            code = 1
            try:
                write(folder / saves.STATE, app._build_persistence_save_dict())  # noqa: SLF001
                saves.finish(self.home, self.port)
                code = 0
            except BaseException as error:  # noqa: BLE001 - this process must not go on as a second emulator
                _report(error)
            finally:
                os._exit(code)
        return copy

    def _wait(self) -> bool:
        """Until the save is written; says whether it was."""
        while self.copy is not None:
            if self._ended():
                return self.saved
            time.sleep(0.02)
        return False

    def _ended(self) -> bool:
        assert self.copy is not None
        if time.monotonic() > self.begun + MOST_SECONDS:
            os.kill(self.copy, signal.SIGKILL)
        ended, status = os.waitpid(self.copy, os.WNOHANG)
        if not ended:
            return False
        self.copy, self.saved = None, status == 0
        if self.saved:
            saves.drop_older(self.home)
        return True


def _report(error: BaseException) -> None:
    print(f"The state could not be saved: {error!r}. The last save stays.", file=sys.stderr, flush=True)


def write(folder: Path, services: dict[str, Callable[[], Any]]) -> None:
    """Every service's state, a file each, as the emulator reads them when it starts."""
    folder.mkdir(parents=True)
    for name, state_of in services.items():
        state = state_of()
        if state is None:
            continue
        if LOST_POSITIONS in state:
            state[LOST_POSITIONS] = {}
        content = {"__ministack_format__": persistence._state_format_version(name), "payload": state}  # noqa: SLF001
        with (folder / f"{name}.json").open("w") as file:
            json.dump(content, file, default=persistence._json_default)  # noqa: SLF001
    code = Path(persistence.STATE_DIR) / "lambda-blobs"
    if code.is_dir():
        saves.link(code, folder / code.name)


def restore() -> None:
    """All or nothing: a hub that lost a part would be saved without it."""
    for name, module in app._state_map.items():  # noqa: SLF001
        if not (Path(persistence.STATE_DIR) / f"{name}.json").exists():
            continue
        state = persistence.load_state(name)
        if state is None:
            raise RuntimeError(f"The kept state of {name} cannot be read.")
        app._get_module(module).load_persisted_state(state)  # noqa: SLF001


def keep(home: Path, state: Path, port: int) -> None:
    """Load what was kept. From the signal `BEGIN` on, save now and then, and once more when asked to stop.

    Before that signal there is nothing worth saving: a hub that is half deployed must not replace one that works.
    """

    def begin(*_: object) -> None:
        loop = app._MAIN_LOOP  # noqa: SLF001
        keeper = Keeper(home, state, port, loop)
        loop.call_soon_threadsafe(loop.add_signal_handler, signal.SIGTERM, keeper.stop)
        loop.call_soon_threadsafe(keeper.begin)

    signal.signal(BEGIN, begin)
    app._load_persisted_state = restore  # noqa: SLF001
    app.save_all = lambda _services: None
