"""How the emulator reads streams and queues for functions: each in a thread of its own, as on AWS.

Imported by `local.launch` only: it is the emulator's.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ministack.services import lambda_svc

LOOK_SECONDS = 1.0
"""So often a source is looked at, though nothing rang."""
GAP_SECONDS = 0.01
"""At least so long from one look to the next."""
BATCH_SECONDS, WINDOW_SECONDS = 0.1, 0.5
"""And so long from one batch to the next, if more than one message fits in, or if it may wait for more."""


class Bells:
    """The emulator has one bell for all that comes to any source; each reader gets its own, and all of them ring."""

    def __init__(self, bell: threading.Event) -> None:
        self._bell, self._readers = bell, list[threading.Event]()

    def new(self) -> threading.Event:
        own = threading.Event()
        self._readers.append(own)
        return own

    def pass_on(self) -> None:
        while True:
            self._bell.wait()
            self._bell.clear()
            for own in list(self._readers):
                own.set()


def read(
    look: Callable[[], bool],
    bell: threading.Event,
    pause_seconds: float = GAP_SECONDS,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Look when the bell rings, and as long as there was something. What is busy comes in batches: after one, what came
    meanwhile waits a little for more."""
    while not until():
        bell.clear()
        began, found = time.monotonic(), False
        try:
            found = look()
        except Exception as error:  # noqa: BLE001 - whatever it is, the source is read on
            print(f"Reading a source for a function failed: {error!r}", file=sys.stderr)
        least = pause_seconds if found else GAP_SECONDS
        time.sleep(max(0.0, began + least - time.monotonic()))
        if not found:
            bell.wait(LOOK_SECONDS)


def pause_of(mapping: dict[str, Any]) -> float:
    if mapping.get("MaximumBatchingWindowInSeconds"):
        return WINDOW_SECONDS
    return BATCH_SECONDS if mapping.get("BatchSize", 10) > 1 else GAP_SECONDS


def read_side_by_side() -> None:
    """No stream and no queue waits for a function that another one called.

    The emulator looks at all sources in turn and calls the functions of streams in between, so that each queue hands
    over one batch for every call of `fan_out` and of `archive`. A tenant that makes these busy would delay what
    everybody has in any queue, which no hub on AWS does.
    """
    mappings, mine = lambda_svc._iter_all_esms, threading.local()  # noqa: SLF001
    bells = Bells(lambda_svc._esm_wake)  # noqa: SLF001

    def of_this_reader() -> Iterator[tuple[Any, Any, Any]]:
        wanted = getattr(mine, "mapping", None)
        return (one for one in mappings() if wanted in (None, one[2]["UUID"]))

    def known() -> dict[str, Any]:
        return {mapping["UUID"]: mapping for _, _, mapping in mappings()}

    def read_one(mapping: dict[str, Any], bell: threading.Event) -> None:
        mine.mapping = mapping["UUID"]
        is_queue = ":sqs:" in mapping.get("EventSourceArn", "")
        look = lambda_svc._poll_sqs if is_queue else lambda_svc._poll_dynamodb_streams  # noqa: SLF001
        read(look, bell, pause_of(mapping), until=lambda: mapping["UUID"] not in known())

    def read_all() -> None:
        begun = set[str]()

        def look() -> bool:
            for id_, mapping in known().items():
                if id_ not in begun:
                    begun.add(id_)
                    start(read_one, mapping, bells.new())
            return False

        start(bells.pass_on)
        read(look, bells.new())

    lambda_svc._iter_all_esms = of_this_reader  # noqa: SLF001
    lambda_svc._poll_loop = read_all  # noqa: SLF001


def start(work: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()
