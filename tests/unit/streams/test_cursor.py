"""T6: a cursor is what the hub wrote for that very stream, or it is invalid. Nothing in between."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.adapters.keyring import StagedKeys
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.keys import key_id
from millrace.streams.domain.cursor import (
    MAX_CURSOR_BYTES,
    CursorPlace,
    marker_scope,
    read_cursor,
    seal,
    stream_scope,
    unseal,
    write_cursor,
)
from millrace.streams.domain.errors import InvalidCursor

KEYS = [b"current", b"previous"]
SCOPE = stream_scope("v2", "t", "r1", "s")
PLACE = CursorPlace("0123456789abcdef", 4_711)
CURSOR = write_cursor(KEYS[0], SCOPE, PLACE)


def find(wanted: bytes) -> Sequence[bytes]:
    return [key for key in KEYS if key_id(key) == wanted]


def any_key(_wanted: bytes) -> Sequence[bytes]:
    """A ring that guesses: only the signature decides then."""
    return KEYS


def decoded(cursor: str) -> bytes:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def refused(cursor: Any, scope: str = SCOPE) -> None:
    for keys in (find, any_key):
        with pytest.raises(InvalidCursor) as refusal:
            read_cursor(keys, scope, cursor)
        body = refusal.value.body()
        assert (body["machine_code"], refusal.value.status) == ("SDK_RUNTIME_INVALID_CURSOR", 400)
        assert body["details"] == {"field": "cursor"}


@given(st.binary(min_size=8, max_size=8), st.integers(0, 2**64 - 1), st.sampled_from(KEYS))
def test_a_cursor_comes_back_as_it_was_written_with_the_current_or_the_previous_key(
    subscription: bytes, position: int, key: bytes
) -> None:
    """T6."""
    place = CursorPlace(subscription.hex(), position)
    assert read_cursor(find, SCOPE, write_cursor(key, SCOPE, place)) == place


def test_every_single_bit_counts() -> None:
    """T6: tamper-evident, in the bytes and in the text."""
    content = decoded(CURSOR)
    for bit in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(encoded(bytes(flipped)))
    for at in range(len(CURSOR)):
        for bit in range(8):
            refused(CURSOR[:at] + chr(ord(CURSOR[at]) ^ 1 << bit) + CURSOR[at + 1 :])


@given(st.integers(0, len(CURSOR) - 1))
def test_a_truncated_cursor_is_invalid(length: int) -> None:
    """T6: from either end, down to the empty one."""
    refused(CURSOR[:length])
    refused(CURSOR[len(CURSOR) - length :])
    refused(encoded(decoded(CURSOR)[: length % len(decoded(CURSOR))]))


@given(st.text(max_size=80) | st.binary(max_size=80).map(encoded) | st.text(min_size=1).map(lambda more: CURSOR + more))
def test_whatever_else_is_sent_is_invalid(text: str) -> None:
    """T6: garbage, well-formed base64, and a cursor with something behind it."""
    refused(text)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        0,
        b"",
        [],
        f" {CURSOR}",
        f"{CURSOR}=",
        f"{CURSOR}\n",
        CURSOR.swapcase(),
        CURSOR * 40,
        "A" * (MAX_CURSOR_BYTES + 1),
    ],
)
def test_a_cursor_is_taken_exactly_as_it_was_given_or_not_at_all(text: Any) -> None:
    """T6: an empty one is foreign too; it never means the beginning."""
    refused(text)


names = st.text(st.sampled_from("ab#%2"), min_size=1, max_size=3)
scopes = st.tuples(names, names, names, names)


@given(scopes, scopes)
def test_a_cursor_is_bound_to_namespace_tenant_runtime_and_stream(ours: Any, theirs: Any) -> None:
    """T6: names with telling characters are kept apart too."""
    cursor = write_cursor(KEYS[0], stream_scope(*ours), PLACE)
    if ours == theirs:
        assert read_cursor(find, stream_scope(*theirs), cursor) == PLACE
    else:
        refused(cursor, stream_scope(*theirs))


@given(st.binary(min_size=1).filter(lambda key: key not in KEYS))
def test_a_cursor_of_another_key_is_invalid(key: bytes) -> None:
    """T6: also when it claims the id of a key we know."""
    refused(write_cursor(key, SCOPE, PLACE))
    content = decoded(write_cursor(key, SCOPE, PLACE))
    refused(encoded(content[:1] + key_id(KEYS[0]) + content[5:]))


def test_a_marker_lists_cursor_is_no_streams_cursor() -> None:
    """T6, M4: nor is one of another topic, or of a topic named like the whole."""
    scopes = [marker_scope("v2", "t", "r1", topic) for topic in (None, "all", "s", "topic")]
    assert len({*scopes, SCOPE}) == 5
    content = bytes(16)
    for scope in scopes:
        sealed = seal(KEYS[0], scope, content)
        assert unseal(find, scope, sealed) == content
        refused(sealed)
        for other in {*scopes} - {scope}:
            with pytest.raises(InvalidCursor):
                unseal(find, other, sealed)


def test_a_sealed_text_of_another_length_is_no_streams_cursor() -> None:
    """T6."""
    for length in (0, 15, 17):
        refused(seal(KEYS[0], SCOPE, bytes(length)))


def test_a_key_with_the_same_id_is_tried_too() -> None:
    """T6: four bytes of a digest may meet; the signature decides."""
    assert read_cursor(lambda _id: [b"impostor", KEYS[0]], SCOPE, CURSOR) == PLACE
    with pytest.raises(InvalidCursor):
        read_cursor(lambda _id: [b"impostor"], SCOPE, CURSOR)


class Secrets:
    """Secrets Manager, counting how often it is asked."""

    def __init__(self, **stages: str) -> None:
        self.stages, self.asked, self.ms = stages, 0, 0

    def ring(self) -> StagedKeys:
        return StagedKeys(self.read, lambda: self.ms)

    def read(self, stage: str) -> str | None:
        self.asked += 1
        return self.stages.get(stage)


def test_the_keys_are_the_current_and_the_previous_secret() -> None:
    """T6."""
    ring = Secrets(AWSCURRENT="new", AWSPREVIOUS="old").ring()
    assert ring.current() == b"new"
    assert [ring.find(key_id(secret)) for secret in (b"new", b"old", b"gone")] == [[b"new"], [b"old"], []]
    assert Secrets(AWSCURRENT="first").ring().find(key_id(b"old")) == []


def test_keys_are_kept_for_five_minutes() -> None:
    """T6: what a rotation changed is met then at the latest."""
    secrets = Secrets(AWSCURRENT="a")
    ring = secrets.ring()
    for secrets.ms in (0, 1_000, 299_999):
        assert ring.current() == b"a"
        assert ring.find(key_id(b"a")) == [b"a"]
    assert secrets.asked == 2
    secrets.stages = {"AWSCURRENT": "b", "AWSPREVIOUS": "a"}
    secrets.ms = 300_000
    assert ring.current() == b"b"
    assert ring.find(key_id(b"a")) == [b"a"]


def test_an_unknown_key_is_looked_up_at_most_every_second() -> None:
    """T6: anybody can send a cursor that names one."""
    secrets = Secrets(AWSCURRENT="a")
    ring = secrets.ring()
    for secrets.ms in (0, 1, 500, 999):
        assert ring.find(key_id(b"b")) == []
    assert secrets.asked == 2
    secrets.stages = {"AWSCURRENT": "b", "AWSPREVIOUS": "a"}
    secrets.ms = 10_000
    assert ring.find(key_id(b"b")) == [b"b"]
    assert secrets.asked == 4


@pytest.mark.parametrize("stages", [{}, {"AWSCURRENT": ""}])
def test_without_a_secret_nothing_is_signed(stages: dict[str, str]) -> None:
    """T6: an empty key would let anybody write cursors."""
    ring = Secrets(**stages).ring()
    with pytest.raises(Unavailable, match="secret"):
        ring.current()
    with pytest.raises(Unavailable, match="secret"):
        ring.find(b"1234")
