"""What a name may be: one rule, asked for by every door that makes something new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.delivery.application.ingest import Ingest
from millrace.delivery.domain.hub_targets import check_target
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.lake.application.record_catalog import RecordCatalog
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import AuthFailed, BadRequest, MillraceError
from millrace.ledger.domain.naming import MAX_NAME_BYTES, UNFIT, name_problem, require_names
from millrace.realtime.application.publish import Publish
from millrace.realtime.domain.verdict import Invalid
from millrace.realtime.doors.validate import validate
from millrace.streams.application.emit import Emit
from millrace.streams.application.runtime_access import Negotiate
from millrace.sync.application.submit import Submit

ROLES = frozenset({"producer", "consumer", "operator"})
UNFIT_NAMES = ["a\uffffb", "a\x00b", "a\nb", "a/b", "a?b", "a#b", "a%b", "..", " ", "ü" * 65, "a\ud800b", "a\u2028b"]
FIT_NAMES = ["demo", "Zürich 1", "日本", "a:b", "a*b", "a.b", "x" * MAX_NAME_BYTES, "👍"]


def bearer(tenant: str = "t", project: str = "p", team_slug: str = "team") -> Identity:
    return Identity("C", tenant, frozenset({project}), ("*",), ROLES, team_slug)


@pytest.mark.parametrize("name", FIT_NAMES)
def test_a_plain_name_may_be_used(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("name", UNFIT_NAMES)
def test_a_name_that_would_break_a_key_a_path_or_a_message_may_not(name: str) -> None:
    assert name_problem(name) is not None
    with pytest.raises(BadRequest) as refused:
        require_names(domain=name)
    assert refused.value.details["field"] == "domain"
    assert refused.value.message.startswith("domain must")


@given(st.text(st.characters(), min_size=1, max_size=140))
def test_what_may_be_used_is_printable_fits_a_key_and_survives_a_path(name: str) -> None:
    if name_problem(name) is None:
        assert name.isprintable()
        assert len(name.encode()) <= MAX_NAME_BYTES
        assert set(name).isdisjoint(UNFIT)


class Untouched:
    """Storage that nobody may reach: a name is refused before anything else is done."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was reached")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("storage was reached")


NOTHING: Any = Untouched()


def submitted(name: str) -> None:
    Submit(NOTHING, NOTHING, lambda *_: "open")(bearer(project=name), name, {"events": []})


def published(name: str) -> None:
    payload = {"callId": "c"}
    event = {"eventId": "e", "sessionId": name, "ts": "2026-02-16T10:00:00Z", "type": "call.connecting"}
    wrong = validate({**event, "payload": payload, "schemaVersion": "1.0"})
    assert isinstance(wrong, Invalid), "it was taken"
    assert {one["pointer"] for one in wrong.errors} == {"/sessionId"}
    raise BadRequest("refused", field="sessionId")


def negotiated(name: str) -> None:
    Negotiate(NOTHING, NOTHING)(bearer(), name, {"supported_contract_versions": [2]})


def emitted(name: str) -> None:
    emit = object.__new__(Emit)
    emit(bearer(), "rt", name, [])


def recorded(name: str) -> None:
    RecordCatalog(NOTHING)(bearer(), name, [])


def ingested(name: str) -> None:
    Ingest(NOTHING)(bearer(team_slug=name), {"events": []})


def put(name: str) -> None:
    check_target("t", name, {"type": "stub", "sources": []}, None, 0, kinds=RECEIVERS, loopback=False)


DOORS = {
    "project": submitted,
    "sessionId": published,
    "runtime_id": negotiated,
    "stream_id": emitted,
    "domain": recorded,
    "team_slug": ingested,
    "target_id": put,
}


@pytest.mark.parametrize("field", DOORS)
@pytest.mark.parametrize("name", UNFIT_NAMES)
def test_every_door_refuses_it_with_the_field_before_anything_is_stored(field: str, name: str) -> None:
    with pytest.raises(MillraceError) as refused:
        DOORS[field](name)
    assert refused.value.details["field"] == field


def tenants() -> list[Callable[[Identity], object]]:
    return [
        lambda who: Submit(NOTHING, NOTHING, lambda *_: "open")(who, "p", {"events": []}),
        lambda who: Publish(NOTHING, NOTHING)(who, []),
        lambda who: Negotiate(NOTHING, NOTHING)(who, "rt", {"supported_contract_versions": [2]}),
        lambda who: RecordCatalog(NOTHING)(who, "d", []),
        lambda who: Ingest(NOTHING)(who, {"events": []}),
    ]


@pytest.mark.parametrize("write", tenants())
def test_a_tenant_whose_name_is_unfit_writes_nothing(write: Callable[[Identity], object]) -> None:
    with pytest.raises(MillraceError) as refused:
        write(bearer(tenant="a\uffff"))
    assert refused.value.details["field"] == "tenant"


@pytest.mark.parametrize("claim", ["client_id", "tenant", "team_slug"])
def test_a_claim_that_utf_8_cannot_say_is_no_claim(claim: str) -> None:
    with pytest.raises(AuthFailed) as refused:
        Identity.of({"client_id": "C", claim: "a\ud800"})
    assert refused.value.details["claim"] == claim


@pytest.mark.parametrize("claim", ["projects", "partitions", "roles"])
def test_a_list_of_claims_that_utf_8_cannot_say_is_none(claim: str) -> None:
    with pytest.raises(AuthFailed):
        Identity.of({"client_id": "C", claim: ["a\udc00"]})
