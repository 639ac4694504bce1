"""Emits events into a stream, in as many requests as it takes. Each event keeps its id until it has a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace_client.errors import Usage
from millrace_client.streams.rest import Rest
from millrace_client.streams.sdk_answers import error_of, is_error
from millrace_client.streams.sdk_errors import Emitted, NoAnswer, Progress, Rejected, Result, SdkError
from millrace_client.sync.events import BATCH, MOST_BYTES
from millrace_client.sync.protocol import Json, compact
from millrace_client.sync.settings import Backoff

OPEN, CLOSE = b'{"events":[', b"]}"


@dataclass(frozen=True, slots=True)
class Emitting:
    """Into the stream whose events are at `path`."""

    rest: Rest
    path: str

    async def one(self, draft: Json) -> Emitted:
        content = _checked(draft, _encoded(draft, "The event"), "The event")
        try:
            reply = await self.rest.request("POST", self.path, content=content)
            return _emitted(reply.body, draft)
        except (SdkError, NoAnswer) as error:
            error.progress = Progress((), (draft,))
            raise

    async def many(self, drafts: Sequence[Json]) -> list[Result]:
        parts = [_part(draft, place) for place, draft in enumerate(drafts)]
        results: list[Result] = []
        for run in _runs([len(part) for part in parts]):
            try:
                results += await self._settled(drafts, parts, run)
            except (SdkError, NoAnswer) as error:
                error.progress = Progress(tuple(results), tuple(drafts[len(results) :]))
                raise
        return results

    async def _settled(self, drafts: Sequence[Json], parts: Sequence[bytes], run: range) -> list[Result]:
        """The results of one request; those that may yet become better are asked for again before the next one."""
        results: dict[int, Result] = {}
        pending = list(run)
        backoff = Backoff(self.rest.settings)
        for attempt in range(self.rest.attempts):
            if attempt:
                await self.rest.settings.sleep(backoff.next())
            content = OPEN + b",".join(parts[place] for place in pending) + CLOSE
            reply = await self.rest.request("POST", self.path, content=content)
            results |= zip(pending, _results(reply.body, [drafts[place] for place in pending]), strict=True)
            pending = [place for place in pending if _may_repeat(results[place])]
            if not pending:
                break
        return [results[place] for place in run]


def _part(draft: Json, place: int) -> bytes:
    part = _encoded(draft, f"Event {place}")
    _checked(draft, OPEN + part + CLOSE, f"Event {place}")
    return part


def _encoded(draft: Json, name: str) -> bytes:
    try:
        return compact(draft).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Usage(f"{name} is not JSON: {error}") from error


def _checked(draft: Json, content: bytes, name: str) -> bytes:
    """As strict as the hub, before anything is sent: there, one bad event would get the whole request refused."""
    try:
        strict_json.parse(content, MOST_BYTES)
    except BadRequest as error:
        raise Usage(f"{name} ({draft['event_id']}): {error.message}") from error
    except TooLarge as error:
        raise Usage(f"{name} has {len(content)} bytes; a request takes {MOST_BYTES}.") from error
    return content


def _runs(sizes: Sequence[int]) -> Iterator[range]:
    """Which events go together: in order, and no more than a request takes."""
    start, room = 0, 0
    for place, size in enumerate(sizes):
        if place - start == BATCH or size + 1 > room:
            if place > start:
                yield range(start, place)
            start, room = place, MOST_BYTES - len(OPEN) - len(CLOSE) + 1
        room -= size + 1
    if sizes:
        yield range(start, len(sizes))


def _results(body: Json, drafts: Sequence[Json]) -> list[Result]:
    results = body.get("results")
    if not isinstance(results, list) or len(results) != len(drafts):
        raise NoAnswer("The hub did not answer for every event.")
    return [_result(result, draft) for result, draft in zip(results, drafts, strict=True)]


def _result(result: object, draft: Json) -> Result:
    if isinstance(result, dict) and is_error(result):
        return Rejected(draft["event_id"], error_of(result))
    return _emitted(result, draft)


def _emitted(result: object, draft: Json) -> Emitted:
    if isinstance(result, dict) and result.get("event_id") == draft["event_id"]:
        seq_no, deduped = result.get("seq_no"), result.get("deduped")
        if isinstance(seq_no, int) and isinstance(deduped, bool):
            return Emitted(draft["event_id"], seq_no, deduped)
    raise NoAnswer("The hub's answer is no result for the event that was sent.")


def _may_repeat(result: Result) -> bool:
    return isinstance(result, Rejected) and result.error.may_repeat
