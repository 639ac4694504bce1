"""S16: what of a camelCase client's event is stored, read by other clients, and compared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.page import Draft
from millrace.live.domain.dialects import write_event
from millrace.sync.domain.submit import check_item
from tests.unit.live.dialect_items import CAMEL_ITEM, ITEMS, ME, PROJECT_ITEM, SNAKE_ITEM, read_item


def drafted(dialect: str, item: Any) -> Draft:
    draft = check_item(read_item(dialect, item), ME, "open")
    assert isinstance(draft, Draft), draft
    return draft


def committed(dialect: str, item: Any) -> dict[str, Any]:
    """The item after a trip through the log, as the core hands it to a reader."""
    draft = drafted(dialect, item)
    return {
        "committed_id": 7,
        "id": draft.id,
        "client_id": ME.client_id,
        "partitions": list(draft.partitions),
        **json.loads(draft.body),
        "status_updated_at": 1738451205000,
    }


def test_s16_a_snake_event_reads_in_both_other_dialects() -> None:
    event = committed("snake", SNAKE_ITEM)
    assert write_event("camel", event, "P1") == {
        "id": "e1",
        "partitions": ["a", "b"],
        "projectId": "P1",
        "type": "folder.created",
        "payload": {"folder_id": "A"},
        "meta": {"clientId": "C1", "clientTs": 1738451205000},
        "committedId": 7,
        "created": 1738451205000,
    }
    assert write_event("project", event, "P1") == {
        "id": "e1",
        "projectId": "P1",
        "partition": "a",
        "committedId": 7,
        "type": "folder.created",
        "schemaVersion": 1,
        "payload": {"folder_id": "A"},
        "meta": {"clientId": "C1", "clientTs": 1738451205000},
        "serverTs": 1738451205000,
    }


@pytest.mark.parametrize("dialect", ["camel", "project"])
def test_s16_a_flat_event_reads_in_snake_case_with_its_meta_as_sent(dialect: str) -> None:
    item = ITEMS[dialect]
    event = write_event("snake", committed(dialect, item))
    assert (event["event"]["type"], event["event"]["payload"]) == (item["type"], item["payload"])
    assert event["meta"] == item["meta"]


def test_s16_a_project_event_keeps_its_content_for_camel_clients_and_back() -> None:
    assert write_event("camel", committed("project", PROJECT_ITEM), "P1") == {
        **{key: value for key, value in PROJECT_ITEM.items() if key not in ("partition", "schemaVersion")},
        "partitions": ["a"],
        "committedId": 7,
        "created": 1738451205000,
    }
    back = write_event("project", committed("camel", CAMEL_ITEM), "P1")
    assert (back["schemaVersion"], back["partition"], back["meta"]) == (1, "a", CAMEL_ITEM["meta"])


@pytest.mark.parametrize("given_version", ["2", 0, -1, True, 1.5, None, [2]])
def test_s16_a_schema_version_that_no_client_could_read_is_written_as_1(given_version: Any) -> None:
    item = {**SNAKE_ITEM, "event": {**SNAKE_ITEM["event"], "schemaVersion": given_version, "userId": 5}}
    event = write_event("project", committed("snake", item), "P1")
    assert event["schemaVersion"] == 1
    assert "userId" not in event


def test_s16_a_snake_callers_meta_cannot_pose_as_another_client() -> None:
    item = {**SNAKE_ITEM, "meta": {"clientId": "C2", "clientTs": 3, "x": 1}}
    assert write_event("camel", committed("snake", item))["meta"] == {"clientId": "C1", "clientTs": 3, "x": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("dialect", ["camel", "project"])
@given(payload=JSON, client_ts=JSON, extra=st.dictionaries(st.text(max_size=8), JSON, max_size=2))
def test_s16_payload_and_client_ts_come_back_exactly_as_sent(
    dialect: str, payload: Any, client_ts: Any, extra: dict[str, Any]
) -> None:
    meta = {**extra, "clientId": "C1", "clientTs": client_ts}
    item = {**ITEMS[dialect], "payload": payload, "meta": meta}
    for reader in ("camel", "project"):
        event = json.loads(json.dumps(write_event(reader, committed(dialect, item), "P1")))
        assert canonical([event["payload"], event["meta"]]) == canonical([payload, meta])


SAME = [
    {"meta": {**PROJECT_ITEM["meta"], "clientId": "C2"}},
    {"meta": {"clientTs": PROJECT_ITEM["meta"]["clientTs"]}},
    {"projectId": "P2"},
    {"projectId": ...},
]
OTHER = [
    {"meta": {**PROJECT_ITEM["meta"], "clientTs": 1}},
    {"meta": {**PROJECT_ITEM["meta"], "extra": 1}},
    {"meta": {}},
    {"schemaVersion": 4},
    {"userId": "U2"},
    {"userId": ...},
    {"type": "folder.deleted"},
    {"payload": {}},
    {"partition": "b"},
]


def fingerprint(dialect: str, change: dict[str, Any]) -> bytes:
    item = {**ITEMS[dialect], "meta": PROJECT_ITEM["meta"], **change}
    if dialect == "camel" and "partition" in item:
        item["partitions"] = [item.pop("partition")]
    core = read_item(dialect, {key: value for key, value in item.items() if value is not ...})
    core.pop("client_id", None)
    draft = check_item(core, ME, "open")
    assert isinstance(draft, Draft), draft
    return draft.digest


@pytest.mark.parametrize("dialect", ["camel", "project"])
@pytest.mark.parametrize("change", SAME)
def test_s16_client_and_project_are_not_compared(dialect: str, change: dict[str, Any]) -> None:
    assert fingerprint(dialect, change) == fingerprint(dialect, {})


@pytest.mark.parametrize("dialect", ["camel", "project"])
@pytest.mark.parametrize("change", OTHER)
def test_s16_everything_else_is_compared(dialect: str, change: dict[str, Any]) -> None:
    assert fingerprint(dialect, change) != fingerprint(dialect, {})
