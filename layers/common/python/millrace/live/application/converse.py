"""Converse: read one message of a WebSocket connection, answer it, and store what it changed (S14, S15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, MillraceError, Unavailable, UnreadableRow
from millrace.ledger.domain.tracing import HEADER, traceparent
from millrace.live.application.answer import Answers, SocketAnswer
from millrace.live.domain import dialects
from millrace.live.domain.line import SYNC
from millrace.live.domain.messages import (
    MAX_IN_FLIGHT,
    MAX_MESSAGE_BYTES,
    PROTOCOL,
    SocketError,
    closes,
    error_message,
    to_text,
)
from millrace.live.ports import Connection, Connections, Subscriptions, Turn, Wire

RETRY_MS = 1_000
MISSTEPS = 5
"""Errors that a socket may make before it says who it is; then it is closed."""


@dataclass(frozen=True, slots=True)
class Converse:
    connections: Connections
    subscriptions: Subscriptions
    wire: Wire
    answers: Answers
    clock: Callable[[], int]
    take_turn: Callable[[str, str], Turn]
    """Wait until it is a message's turn: its connection and its type."""
    count: Callable[[str], None] = lambda _tenant: None
    """Counts a message of a tenant; raises `Throttled` if it sends too many."""

    def __call__(self, connection_id: str, text: str) -> None:
        parsed, problem = _parse(text)
        try:
            turn = self.take_turn(connection_id, str(parsed.get("type", "")))
        except UnreadableRow:
            self.fail(connection_id)  # none of its messages can be answered any more
            return
        except MillraceError as error:
            self._tell(connection_id, parsed, error)
            return
        if turn.connection is None:
            self._tell(connection_id, parsed, _refusal(turn))
        elif not turn.refused:
            self._handle(turn, turn.connection, parsed, problem)

    def _handle(
        self, turn: Turn, connection: Connection, parsed: Mapping[str, Any], problem: MillraceError | None
    ) -> None:
        dialect = connection.dialect or dialects.choose(parsed)
        message = dialects.read(dialect, parsed)
        connection = replace(connection, dialect=dialect)
        try:
            if problem is not None:
                raise problem
            answer = self._answer(connection, message)
        except MillraceError as error:
            messages = [error_message(error, message.get("msg_id"))]
            missteps = connection.missteps + (connection.identity is None)
            answer = SocketAnswer(replace(connection, missteps=missteps), messages, ends=missteps >= MISSTEPS)
        self._conclude(turn, answer)

    def _conclude(self, turn: Turn, answer: SocketAnswer) -> None:
        """Answers go out within the turn: the next message is let in after them. The dialect is chosen for good by the
        message that connects, not by whatever came before it."""
        if not self._post_all(answer):
            self.forget(answer.connection.id)
            return
        connection = answer.connection
        kept = replace(connection, dialect=connection.dialect if connection.identity else "")
        self.connections.end_turn(turn, kept, self.clock())

    def _answer(self, connection: Connection, message: Mapping[str, Any]) -> SocketAnswer:
        _check_envelope(message)
        if connection.identity is not None and connection.expires_ms <= self.clock():
            raise SocketError("auth_failed", "The token has expired; connect again with a new one.", claim="exp")
        if connection.identity is None and message["type"] != "connect":
            raise BadRequest("Say connect first; nothing else is valid before it.", field="type")
        if connection.identity is not None and message["type"] != "disconnect":
            self.count(connection.identity.tenant)
        handler = self.answers.by_type.get(message["type"])
        if handler is None:
            raise BadRequest(f"No such message type; known: {', '.join(self.answers.by_type)}.", field="type")
        if message["type"] == "submit_events" and (trace := traceparent(message.get(HEADER))):
            handler = partial(self.answers.on_submit, trace=trace)
        return handler(connection, message["payload"], message.get("msg_id"))

    def _tell(self, connection_id: str, parsed: Mapping[str, Any], error: MillraceError) -> None:
        """An error to a connection of which nothing could be read."""
        dialect = dialects.choose(parsed)
        sent = error_message(error, dialects.read(dialect, parsed).get("msg_id"))
        self.wire.post(connection_id, to_text(dialects.write(dialect, sent, project="")))
        if closes(sent):
            self.forget(connection_id)

    def _post_all(self, answer: SocketAnswer) -> bool:
        """False when the connection is to be forgotten: gone, closing by contract, or perhaps not reached."""
        connection = answer.connection
        for sent in answer.messages:
            text = to_text(dialects.write(connection.dialect, sent, project=connection.project))
            try:
                if not self.wire.post(connection.id, text) or closes(sent):
                    return False
            except Unavailable:
                return False
        return not answer.ends

    def fail(self, connection_id: str) -> None:
        """Our own mistake: say so and close; the client connects again and loses nothing."""
        sent = error_message(MillraceError("Something went wrong on our side; connect and sync again."))
        try:
            self.wire.post(connection_id, to_text(sent))
        finally:
            self.forget(connection_id)

    def forget(self, connection_id: str) -> None:
        """Close and clean up. Idempotent."""
        self.wire.close(connection_id)
        self.subscriptions.remove(connection_id)
        self.connections.remove(connection_id)


def _refusal(turn: Turn) -> SocketError:
    if turn.refused == "gone":
        return SocketError("auth_failed", "This connection is not known here any more; connect again.")
    if turn.refused == SYNC:
        return SocketError("bad_request", "A sync is running on this connection; wait for its answer.", field="type")
    if turn.refused == "in_flight":
        text = f"{MAX_IN_FLIGHT} submits of this connection are waiting for their answers; it was not read."
        return SocketError("rate_limited", text, retry_after_ms=RETRY_MS, submits_in_flight=MAX_IN_FLIGHT)
    return SocketError("rate_limited", "Too many messages on this connection.", retry_after_ms=RETRY_MS)


def _parse(text: str) -> tuple[dict[str, Any], MillraceError | None]:
    """The message, or an empty one and what is wrong with it."""
    try:
        strict_json.refuse_replacements(text)
        parsed = strict_json.parse(text.encode("utf-8", "surrogatepass"), MAX_MESSAGE_BYTES)
    except MillraceError as error:
        return {}, error
    if not isinstance(parsed, dict):
        return {}, BadRequest("A message is an object with type, protocol_version and payload.", field="body")
    return parsed, None


def _check_envelope(message: Mapping[str, Any]) -> None:
    if not isinstance(message.get("type"), str):
        raise BadRequest("A message needs a type: a string.", field="type")
    version = message.get("protocol_version")
    if not isinstance(version, str):
        raise BadRequest("A message needs a protocol_version: a string.", field="protocol_version")
    if version != PROTOCOL:
        text = f"This hub speaks protocol version {PROTOCOL}."
        raise SocketError("protocol_version_unsupported", text, field="protocol_version", supported=[PROTOCOL])
    if not isinstance(message.get("payload"), dict):
        raise BadRequest("A message needs a payload: an object.", field="payload")
    if not isinstance(message.get("msg_id"), str | None):
        raise BadRequest("msg_id must be a string.", field="msg_id")
