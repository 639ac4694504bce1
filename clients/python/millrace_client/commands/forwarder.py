"""Takes events of a project, session or stream to a local server, one by one, and remembers the last one accepted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self

from rich.text import Text

from millrace_client.commands.connection import ChosenHub
from millrace_client.commands.output import err, out, print_json
from millrace_client.commands.tails import subscriber
from millrace_client.commands.websocket import show_status
from millrace_client.errors import Usage
from millrace_client.sync.forwarding import Forwardable, Forwarded, Forwarding, of_project, of_session, of_stream
from millrace_client.sync.live import Live
from millrace_client.sync.store import Cursor


@dataclass(frozen=True, slots=True)
class Listened:
    """What is listened to: a project with its partitions, a session, or a stream."""

    project: str | None = None
    partitions: Sequence[str] | None = None
    session: str | None = None
    stream: tuple[str, str] | None = None

    @classmethod
    def of(cls, project: str | None, partitions: Sequence[str] | None, session: str | None, stream: str | None) -> Self:
        """Raises `Usage` unless exactly one thing is named."""
        if sum(one is not None for one in (project, session, stream)) != 1:
            raise Usage("Name one of --project, --session and --stream.")
        if partitions and project is None:
            raise Usage("--partition goes with --project.")
        if stream is None:
            return cls(project, sorted(set(partitions)) if partitions else None, session)
        runtime_id, _, stream_id = stream.partition("/")
        if not (runtime_id and stream_id):
            raise Usage(f"--stream {stream}: write it as runtime_id/stream_id.")
        return cls(stream=(runtime_id, stream_id))

    @property
    def name(self) -> str:
        if self.project is not None:
            of = f" ({', '.join(self.partitions)})" if self.partitions else ""
            return f"project {self.project}{of}"
        return f"session {self.session}" if self.session is not None else f"stream {'/'.join(self.stream or ())}"


class ForwardLog:
    """One line for each try."""

    def __init__(self, as_json: bool) -> None:
        self.accepted = self.given_up = 0
        self._as_json = as_json

    def __call__(self, tried: Forwarded) -> None:
        self.accepted += tried.accepted
        self.given_up += not tried.accepted and tried.retry_in is None
        if self._as_json:
            print_json(_as_json(tried))
            return
        again = "" if tried.retry_in is None else f", again in {tried.retry_in:.1f} s"
        result = tried.error if tried.status is None else str(tried.status)
        style = "green" if tried.accepted else "red"
        event = tried.event
        line = Text.assemble(
            (f"{event.position:>8}  ", "bold"), f"{event.event_type}  {event.event_id}  → ", (result, style)
        )
        out.print(line.append(f"  {tried.ms} ms{again}"), soft_wrap=True)


def _as_json(tried: Forwarded) -> dict[str, object]:
    return {
        "position": tried.event.position,
        "event_id": tried.event.event_id,
        "event_type": tried.event.event_type,
        "attempt": tried.attempt,
        "status": tried.status,
        "ms": tried.ms,
        "error": tried.error,
        "accepted": tried.accepted,
    }


@dataclass(frozen=True, slots=True)
class Forwarder:
    hub: ChosenHub
    what: Listened
    cursor: Cursor
    forward: Forwarding
    count: int | None = None

    async def run(self) -> None:
        """Until it is interrupted, or after `count` events. The place moves when an event is accepted, or given up."""
        done = 0
        async with aclosing(self._events()) as events:
            async for event in events:
                await self.forward(event)
                self.cursor.apply([], event.position)
                done += 1
                if done == self.count:
                    return

    def _events(self) -> AsyncGenerator[Forwardable, None]:
        return self._of_project(self.what.project) if self.what.project is not None else self._tailed()

    async def _of_project(self, project: str) -> AsyncGenerator[Forwardable, None]:
        token = self.hub.token or self.hub.bearer(project)
        live = Live(self.hub.url, project, token, store=":memory:", on_status=show_status)
        async with live:
            events = live.follow(self.what.partitions, since=self.cursor.position, on_pruned="continue")
            async with aclosing(events):
                async for event in events:
                    yield of_project(project, event)

    async def _tailed(self) -> AsyncGenerator[Forwardable, None]:
        async with subscriber(self.hub) as client:
            if self.what.session is not None:
                tail = client.session(self.what.session, self.cursor.position, on_gap="yield")
            else:
                tail = client.stream(*(self.what.stream or ("", "")), self.cursor.position, on_gap="yield")
            async with aclosing(tail):
                async for one in tail:
                    if one.gap:
                        err.print(f"Gap: events up to {one.position} are no longer kept.", style="red")
                    elif self.what.session is not None:
                        yield of_session(self.what.session, one.event)
                    else:
                        yield of_stream(*(self.what.stream or ("", "")), one.event)
