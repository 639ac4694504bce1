"""Cursors (T6): a place in a stream that only the hub can write, bound to its stream and to one subscription."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.keys import KEY_ID_BYTES, Key, key_id
from millrace.ledger.domain.names import join_key
from millrace.streams.domain.errors import InvalidCursor

FORMAT = b"\x01"
SUBSCRIPTION_BYTES, POSITION_BYTES, MAC_BYTES = 8, 8, 16
MAX_CURSOR_BYTES = 1_024

FindKeys = Callable[[bytes], Sequence[Key]]
"""The keys that an id may mean, the best guess first; empty when it is of a key that is gone."""


@dataclass(frozen=True, slots=True)
class CursorPlace:
    """Everything up to `position` has been given to this subscription."""

    subscription: str
    position: int


def stream_scope(namespace: str, tenant: str, runtime_id: str, stream_id: str) -> str:
    return join_key("stream cursor", namespace, tenant, runtime_id, stream_id)


def marker_scope(namespace: str, tenant: str, runtime_id: str, topic_id: str | None) -> str:
    topic = ("all",) if topic_id is None else ("topic", topic_id)
    return join_key("marker cursor", namespace, tenant, runtime_id, *topic)


def write_cursor(key: Key, scope: str, place: CursorPlace) -> str:
    content = bytes.fromhex(place.subscription) + place.position.to_bytes(POSITION_BYTES, "big")
    return seal(key, scope, content)


def read_cursor(find_keys: FindKeys, scope: str, text: Any) -> CursorPlace:
    """Raises `InvalidCursor` for whatever this stream's polls did not return. It never means another place."""
    content = unseal(find_keys, scope, text)
    if len(content) != SUBSCRIPTION_BYTES + POSITION_BYTES:
        raise _invalid("it is not a stream's cursor")
    position = int.from_bytes(content[SUBSCRIPTION_BYTES:], "big")
    return CursorPlace(content[:SUBSCRIPTION_BYTES].hex(), position)


def seal(key: Key, scope: str, content: bytes) -> str:
    head = FORMAT + key_id(key) + content
    return _encode(head + _mac(key, scope, head))


def unseal(find_keys: FindKeys, scope: str, text: Any) -> bytes:
    """The content of a sealed text, whose every bit is checked."""
    if not isinstance(text, str) or not text:
        raise _invalid("it is empty")
    sealed = _decode(text)
    head, mac = sealed[:-MAC_BYTES], sealed[-MAC_BYTES:]
    if len(sealed) < 1 + KEY_ID_BYTES + MAC_BYTES or head[:1] != FORMAT:
        raise _invalid("it is truncated or not a cursor")
    keys = find_keys(head[1 : 1 + KEY_ID_BYTES])
    if not keys:
        raise _invalid("it was signed with a key that is gone, or altered")
    if not any(hmac.compare_digest(mac, _mac(key, scope, head)) for key in keys):
        raise _invalid("it is of another stream, or altered")
    return head[1 + KEY_ID_BYTES :]


def _mac(key: Key, scope: str, head: bytes) -> bytes:
    signed = scope.encode() + b"\x00" + head
    return hmac.digest(hmac.digest(key, b"cursor", "sha256"), signed, "sha256")[:MAC_BYTES]


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    if len(text) > MAX_CURSOR_BYTES or not text.isascii():
        raise _invalid("it is not a cursor")
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid("it is truncated or not a cursor") from error
    if _encode(content) != text:
        raise _invalid("it was altered")
    return content


def _invalid(why: str) -> InvalidCursor:
    return InvalidCursor(f"The cursor is not valid here: {why}.", field="cursor")
