"""P4: what a request for a grant must say, what a grant covers, and when it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.ledger.adapters.keyring import StagedKeys
from millrace.streams.adapters.sealing import AesSealer
from millrace.streams.domain.errors import GrantEnded, InvalidArgument
from millrace.streams.domain.grant import BreakGlassGrant, check_grant
from tests.unit.streams.hub import odd

CANARY = "canary-44"
RAW = [("peer_id", "peerid", "bob"), ("payload.x[0].traceId", "traceid", {"n": 1})]


def grant(**changes: Any) -> BreakGlassGrant:
    made: dict[str, Any] = {
        "id": "g1",
        "runtime_id": "r1",
        "who": "me",
        "reason": "why",
        "streams": None,
        "fields": None,
        "created_ms": 1_000,
        "expires_ms": 61_000,
        "salt": "00" * 16,
    }
    return BreakGlassGrant(**{**made, **changes})


def sealer(**secrets: str) -> AesSealer:
    stages = {"AWSCURRENT": "secret", **secrets}
    return AesSealer(StagedKeys(stages.get, lambda: 0))


def test_a_request_states_why_how_long_and_which_scope() -> None:
    """P4."""
    scope = {"streams": ["s"], "fields": ["peer_id", "Trace-Id"]}
    assert check_grant({"reason": "why", "ttl_s": 60, "scope": scope}) == ("why", 60, ("s",), ("peer_id", "Trace-Id"))
    for everything in odd({}, {"scope": None}, {"scope": {}}, {"scope": {"streams": None, "fields": None}}):
        assert check_grant({"reason": "x" * 1_024, "ttl_s": 86_400, **everything}) == ("x" * 1_024, 86_400, None, None)


GOOD = {"reason": "why", "ttl_s": 60}


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (None, "body"),
        ([GOOD], "body"),
        (CANARY, "body"),
        ({"ttl_s": 60}, "reason"),
        *(({**GOOD, "reason": bad}, "reason") for bad in odd("", "  ", None, 5, [CANARY], "x" * 1_025, "ä" * 513)),
        ({"reason": "why"}, "ttl_s"),
        *(({**GOOD, "ttl_s": bad}, "ttl_s") for bad in odd(59, 86_401, 60.0, "60", None, True, [CANARY])),
        *(({**GOOD, "scope": bad}, "scope") for bad in odd([], "", 0, False, CANARY, {"stream": ["s"]}, ["s"])),
        *(({**GOOD, "scope": {"streams": bad}}, "scope.streams") for bad in odd([], "s", [""], [1], ["x"] * 33, {})),
        *(({**GOOD, "scope": {"fields": bad}}, "scope.fields") for bad in odd([], CANARY, [None], ["x"] * 33)),
        ({**GOOD, "runtime_id": CANARY}, "runtime_id"),
    ],
)
def test_a_bad_request_names_its_field_and_no_value(sent: Any, field: str) -> None:
    """P4: above all, a scope that cannot be read never means everything."""
    with pytest.raises(InvalidArgument) as refusal:
        check_grant(sent)
    assert refusal.value.details["field"] == field
    assert CANARY not in json.dumps(refusal.value.body())


@pytest.mark.parametrize(
    ("streams", "fields", "paths"),
    [
        (None, None, ["peer_id", "payload.x[0].traceId"]),
        (("s",), None, ["peer_id", "payload.x[0].traceId"]),
        (("other",), None, []),
        (None, ("PeerId",), ["peer_id"]),
        (None, ("trace-id", "nothing"), ["payload.x[0].traceId"]),
        (("other",), ("peer_id",), []),
    ],
)
def test_a_grant_covers_its_streams_and_fields_however_they_are_spelled(
    streams: tuple[str, ...] | None, fields: tuple[str, ...] | None, paths: list[str]
) -> None:
    """P4."""
    assert [path for path, _ in grant(streams=streams, fields=fields).covered("s", RAW)] == paths


def test_a_grant_ends_when_its_time_is_up_or_it_is_revoked() -> None:
    """P4: to the millisecond."""
    made = grant()
    assert [made.active(now) for now in (1_000, 60_999, 61_000, 61_001)] == [True, True, False, False]
    assert [made.as_json(now)["status"] for now in (60_999, 61_000)] == ["active", "expired"]
    revoked = made.revoked(2_000)
    assert not revoked.active(1_500)
    assert [revoked.as_json(now)["status"] for now in (2_000, 99_000)] == ["revoked", "revoked"]


def test_a_grant_is_told_without_its_salt() -> None:
    """P4."""
    made = grant(streams=("s",), fields=("peer_id",), salt="ab" * 16)
    assert made.as_json(1_000) == {
        "grant_id": "g1",
        "runtime_id": "r1",
        "who": "me",
        "reason": "why",
        "scope": {"streams": ["s"], "fields": ["peer_id"]},
        "created_ts_ms": 1_000,
        "expires_ts_ms": 61_000,
        "status": "active",
    }


@pytest.mark.parametrize("made", [grant(), grant(streams=("a", "b"), fields=("c",)), grant().revoked(5)])
def test_a_grant_survives_its_storage(made: BreakGlassGrant) -> None:
    """P4."""
    assert BreakGlassGrant.of(json.loads(json.dumps(made.stored()))) == made


def test_what_is_sealed_is_encrypted_and_opens_for_its_grant_alone() -> None:
    """P4."""
    sealed = sealer().seal(grant(), CANARY.encode())
    assert CANARY.encode() not in sealed
    assert sealer().seal(grant(), CANARY.encode()) != sealed, "the same value does not look the same"
    assert sealer().open(grant(), sealed) == CANARY.encode()
    for other in (grant(id="g2"), grant(salt="11" * 16), grant().revoked(5)):
        with pytest.raises(GrantEnded):
            sealer().open(other, sealed)
    for at in range(len(sealed)):
        altered = bytearray(sealed)
        altered[at] ^= 1
        with pytest.raises(GrantEnded):
            sealer().open(grant(), bytes(altered))


def test_what_is_sealed_outlives_one_rotation_of_the_secret_and_not_two() -> None:
    """P4."""
    sealed = sealer().seal(grant(), b"x")
    assert sealer(AWSCURRENT="new", AWSPREVIOUS="secret").open(grant(), sealed) == b"x"
    with pytest.raises(GrantEnded):
        sealer(AWSCURRENT="newer", AWSPREVIOUS="new").open(grant(), sealed)
