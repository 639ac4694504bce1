"""R1, R2, R10: what a valid realtime event is, told type by type from the contract's own table."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from infra.realtime_docs import example, files
from millrace.realtime.domain.verdict import Invalid, Valid
from millrace.realtime.doors import event_types
from millrace.realtime.doors.registry import FAMILIES, TYPES, schema
from millrace.realtime.doors.validate import validate

ROOT = Path(__file__).parents[3]

# The contract's own table, said a second time so that no change of a model goes unseen; a type added later need not be
# here. `name` is text, `name:int` and the like a kind, `name:a|b` an enumeration.
TABLE = """
call.started                    callId channel:voice|video direction:inbound|outbound provider
call.connecting                 callId
call.connected                  callId connectedAt:date
call.reconnecting               callId attempt:int at:date
call.ended                      callId endedAt:date durationSeconds:int endReason:completed|user_hangup|timeout|agent_handover
call.error                      code message retryable:bool
call.terminal_failure           callId failedAt:date code message
call.voice.config.updated       callId persona:antonio|mariana|both voiceProfileId label synthesisAllowed:bool
call.turn.owner_changed         callId turnId owner:user|agent
call.turn.timing                callId turnId captureToBackendMs:int orchestratorMs:int playbackStartMs:int totalMs:int sloBreached:bool
transcript.partial              utteranceId speaker:user|agent|unknown text startMs:int endMs:int
transcript.final                utteranceId speaker:user|agent text startMs:int endMs:int
orchestration.action.requested  actionId actionType summary
action.proposed                 actionId actionType summary
action.requires_confirmation    actionId reason confirmationToken
action.executed                 actionId durationMs:int
action.failed                   actionId code message retryable:bool
safety.blocked                  policyId reason decision
safety.approved                 policyId decision
billing.usage.recorded          meterId billableSeconds:int
billing.adjustment.created      adjustmentId meterId amount:number currency
usage.tick                      meterId billableSeconds:int
usage.warning                   meterId thresholdType:seconds|cost thresholdValue:figure currentValue:figure message
usage.stopped                   meterId finalBillableSeconds:int reason:budget_exceeded|policy_limit|manual_stop
"""  # noqa: E501
ROWS = [line.split() for line in TABLE.strip().splitlines()]
FIELDS = {
    name: {field.partition(":")[0]: field.partition(":")[2] or "text" for field in fields} for name, *fields in ROWS
}

BLANKS = ["\ufeff", " \ufeff\u00a0\u3000", "\u0085\u1680\u2000\u200a\u2028\u2029\u202f\u205f", "\t\n\v\f\r"]
"""White space by Unicode, and U+FEFF. A zero-width space and separators of files are none."""
GOOD: dict[str, list[Any]] = {
    "text": ["x", " a ", "0", "\ufeffx", "\u200b", "\x1c"],
    "date": ["2026-02-16T10:00:00.000Z", "2026-02-16T10:00:00+02:00", "2026-02-16T10:00:00.123456789-11:30"],
    "int": [0, 1, 1.0, 2**70],
    "bool": [True, False],
    "number": [-2.5, 0, 10**30],
    "figure": [12.5, 0, "12.50"],
}
BAD: dict[str, list[Any]] = {
    "text": ["", " \t\n", *BLANKS, 7, True, None, [], {}],
    "date": ["", "today", "2026-02-16", "2026-02-16T10:00:00", "2026-02-30T10:00:00Z", 1771236000, None],
    "int": [-1, -1.0, 1.5, True, False, "1", None, [1]],
    "bool": [0, 1, "true", None],
    "number": ["1", True, None, [], float("nan"), float("inf")],
    "figure": [True, "", " ", BLANKS[0], None, [], {}],
}
BEYOND_SCHEMA = ("2026-02-30T10:00:00Z", BAD["number"][-2], BAD["number"][-1])
"""A pattern knows no calendar, and JSON neither NaN nor infinities."""
SECRET = "s3cret-value"
ENVELOPE = {"eventId": "e1", "sessionId": "s1", "ts": "2026-02-16T10:00:00.000Z", "schemaVersion": "1.0"}
KEYS = ["eventId", "sessionId", "ts", "type", "payload", "schemaVersion"]


def good(kind: str) -> list[Any]:
    return GOOD.get(kind) or kind.split("|")


def bad(kind: str) -> list[Any]:
    member = good(kind)[0]
    return BAD.get(kind) or ["", SECRET, f"{member} ", member.upper(), 1, True, None, [member]]


def event(name: str = "call.connecting", **changes: Any) -> dict[str, Any]:
    payload = {field: good(kind)[0] for field, kind in FIELDS[name].items()}
    return {**copy.deepcopy(ENVELOPE), "type": name, "payload": payload, **changes}


def with_field(name: str, field: str, value: Any) -> dict[str, Any]:
    made = event(name)
    made["payload"][field] = value
    return made


def without(made: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in made.items() if key not in keys}


def errors(raw: Any) -> dict[str, str]:
    """Message by pointer; fails when the event is valid or a place is named twice."""
    verdict = validate(raw)
    assert isinstance(verdict, Invalid), "taken for valid"
    found = {error["pointer"]: error["message"] for error in verdict.errors}
    assert len(found) == len(verdict.errors)
    assert all(found.values())
    return found


def accepted(raw: Any) -> dict[str, Any]:
    verdict = validate(raw)
    assert isinstance(verdict, Valid), verdict
    return verdict.event


def cases(values: Callable[[str], list[Any]]) -> list[Any]:
    return [
        pytest.param(name, field, value, id=f"{name}-{field}-{value!r}")
        for name, fields in FIELDS.items()
        for field, kind in fields.items()
        for value in values(kind)
    ]


def schema_takes(name: str, raw: Any) -> bool:
    return bool(Draft202012Validator(schema(name)).is_valid(raw))


def test_the_registry_has_every_type_of_the_contract_and_only_its_families() -> None:
    text = (ROOT / "docs" / "contracts.md").read_text().partition("### Realtime payloads")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == set(FIELDS) <= set(TYPES)
    assert set(FAMILIES) == {"call", "transcript", "orchestration", "action", "safety", "billing", "usage"}


def documented(row: str) -> dict[str, str]:
    """Field → kind, as a row of the page of contracts has them."""
    kinds = {"int": "int", "bool": "bool", "boolean": "bool", "(date)": "date", "number": "number", "figure": "figure"}
    found: dict[str, str] = {}
    for name, rule in re.findall(r"`(\w+)`([^`]*)", row):
        word = rule.replace("\\|", "|").strip(" ,").split(" ")[0].rstrip(",")
        found[name] = kinds.get(word) or (word if "|" in word else "text")
    return found


def test_the_page_of_contracts_and_this_table_say_the_same_of_every_field() -> None:
    """R2: the cases of this module are those of the table that is published."""
    text = (ROOT / "docs" / "contracts.md").read_text().partition("### Realtime payloads")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| (.+) \|$", text, re.MULTILINE)
    published = {name: documented(row) for names, row in rows for name in re.findall(r"`([^`]+)`", names)}
    expected = {name: dict(fields) for name, fields in FIELDS.items()}
    for name in ("billing.usage.recorded", "usage.tick"):
        expected[name] |= {"quantity": "int", "unit": "seconds|count"}
    assert published == expected


def test_every_class_of_event_types_is_a_type_of_its_own() -> None:
    written = re.findall(r'^class \w+\(\w+, of="([^"]+)"', Path(event_types.__file__).read_text(), re.MULTILINE)
    assert written == list(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_an_event_without_a_required_field_is_refused_by_its_name(name: str) -> None:
    for field in schema(name)["properties"]["payload"]["required"]:
        raw = example(name)
        del raw["payload"][field]
        assert errors(raw) == {f"/payload/{field}": "is required"}


@pytest.mark.parametrize("name", FIELDS)
def test_each_type_is_accepted_exactly_as_sent(name: str) -> None:
    raw = event(name)
    raw["payload"] |= {"later": {"a": [1.0, None]}, "call_id": 5, "model_config": 1, "": ""}
    sent = copy.deepcopy(raw)
    assert accepted(raw) == sent
    assert json.dumps(accepted(raw)["payload"]) == json.dumps(sent["payload"])
    assert list(accepted(raw)) == KEYS
    assert schema_takes(name, raw)


@pytest.mark.parametrize(("name", "field", "value"), cases(good))
def test_every_value_of_a_fields_kind_is_accepted(name: str, field: str, value: Any) -> None:
    raw = with_field(name, field, value)
    assert accepted(raw)["payload"][field] is value
    assert schema_takes(name, raw)


@pytest.mark.parametrize(("name", "field", "value"), cases(bad))
def test_every_other_value_is_refused_by_its_place(name: str, field: str, value: Any) -> None:
    raw = with_field(name, field, value)
    found = errors(raw)
    not_sent = field == "billableSeconds" and value is None
    assert list(found) == ["/payload" if not_sent else f"/payload/{field}"]
    assert SECRET not in str(found)
    if value not in BEYOND_SCHEMA:
        assert not schema_takes(name, raw)


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, fields in FIELDS.items() for field in fields])
def test_every_field_of_the_table_is_required(name: str, field: str) -> None:
    raw = event(name)
    del raw["payload"][field]
    if field == "billableSeconds":
        assert errors(raw) == {"/payload": "needs billableSeconds, or quantity with unit"}
    else:
        assert errors(raw) == {f"/payload/{field}": "is required"}
    assert not schema_takes(name, raw)


@pytest.mark.parametrize("name", ["billing.usage.recorded", "usage.tick"])
class TestUsage:
    @pytest.mark.parametrize(
        "measured",
        [
            {"billableSeconds": 0},
            {"quantity": 3, "unit": "count"},
            {"quantity": 3.0, "unit": "seconds"},
            {"billableSeconds": 3, "quantity": 3},
            {"billableSeconds": 3, "unit": "seconds"},
            {"billableSeconds": 3, "quantity": 3, "unit": "seconds"},
            {"billableSeconds": None, "quantity": 1, "unit": "count"},
            {"billableSeconds": 0, "quantity": None},
            {"billableSeconds": 3, "quantity": None, "unit": None},
            {"billableSeconds": 3, "quantity": 3, "unit": None},
        ],
    )
    def test_seconds_or_a_quantity_with_its_unit(self, name: str, measured: dict[str, Any]) -> None:
        raw = event(name, payload={"meterId": "m", **measured})
        assert accepted(raw)["payload"] == {"meterId": "m", **measured}
        assert schema_takes(name, raw)

    @pytest.mark.parametrize(
        ("measured", "places"),
        [
            ({}, [""]),
            ({"quantity": 3}, [""]),
            ({"unit": "count"}, [""]),
            ({"quantity": 3, "unit": "minutes"}, ["/unit"]),
            ({"quantity": -1, "unit": "count"}, ["/quantity"]),
            ({"quantity": True, "unit": None}, ["/quantity", ""]),
            ({"billableSeconds": None}, [""]),
            ({"billableSeconds": None, "quantity": None, "unit": None}, [""]),
            ({"billableSeconds": None, "quantity": 1, "unit": None}, [""]),
            ({"billableSeconds": None, "quantity": 1.5, "unit": "count"}, ["/quantity"]),
            ({"quantity": 1.5}, ["/quantity", ""]),
            ({"billableSeconds": 3, "quantity": -1}, ["/quantity"]),
            ({"billableSeconds": -1, "quantity": 1, "unit": "count"}, ["/billableSeconds"]),
            ({"billableSeconds": 3, "quantity": 1, "unit": "minutes"}, ["/unit"]),
            ({"meterId": " "}, ["/meterId", ""]),
        ],
    )
    def test_anything_else_is_refused(self, name: str, measured: dict[str, Any], places: list[str]) -> None:
        raw = event(name, payload={"meterId": "m", **measured})
        assert list(errors(raw)) == [f"/payload{place}" for place in places]
        assert not schema_takes(name, raw)


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_refused(key: str) -> None:
    assert errors(without(event(), key)) == {f"/{key}": "is required"}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", [None, 1, True, [], ["1.0"], " ", ""])
def test_a_wrong_envelope_value_is_refused(key: str, value: Any) -> None:
    assert list(errors(event(**{key: value}))) == [f"/{key}"]


@pytest.mark.parametrize("value", ["text", [], None, 3, True])
def test_an_event_is_an_object(value: Any) -> None:
    assert list(errors(value)) == [""]


@pytest.mark.parametrize("key", ["actor", "sequence", "TS", "", "a/b~c", "Timestamp"])
def test_an_unknown_key_is_refused(key: str) -> None:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    assert list(errors(event(**{key: SECRET}))) == [pointer]
    assert SECRET not in str(errors(event(**{key: SECRET})))


def test_a_flood_of_unknown_keys_is_counted() -> None:
    found = errors({**event(), **{f"k{number}": number for number in range(5_000)}})
    assert len(found) == 21
    assert "4980" in found[""]


@pytest.mark.parametrize(("legacy", "key"), [("timestamp", "ts"), ("version", "schemaVersion")])
class TestLegacy:
    def test_an_old_name_alone_is_renamed(self, legacy: str, key: str) -> None:
        raw = {**without(event(), key), legacy: event()[key]}
        assert accepted(raw) == event()
        assert list(accepted(raw)) == KEYS
        assert legacy in raw, "what was sent is not changed"

    def test_both_names_are_refused_even_when_they_agree(self, legacy: str, key: str) -> None:
        found = errors(event(**{legacy: event()[key]}))
        assert found == {f"/{legacy}": f"is the old name of {key}; send {key} alone"}

    def test_both_names_are_refused_when_the_new_one_is_null(self, legacy: str, key: str) -> None:
        assert set(errors(event(**{legacy: event()[key], key: None}))) == {f"/{legacy}", f"/{key}"}

    def test_an_error_points_at_the_name_that_was_sent(self, legacy: str, key: str) -> None:
        assert list(errors({**without(event(), key), legacy: "yesterday"})) == [f"/{legacy}"]

    def test_an_unknown_key_beside_it_is_still_unknown(self, legacy: str, key: str) -> None:
        assert list(errors({**without(event(), key), legacy: event()[key], "actor": {}})) == ["/actor"]


def test_both_old_names_together_are_renamed() -> None:
    raw = {**without(event(), "ts", "schemaVersion"), "timestamp": ENVELOPE["ts"], "version": "1.0"}
    assert accepted(raw) == event()


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.10", "1.234567890123456789"])
def test_every_1_x_is_accepted(version: str) -> None:
    assert accepted(event(schemaVersion=version))["schemaVersion"] == version


@pytest.mark.parametrize("version", ["2.0", "0.9", "1", "1.", "1.00", "1.01", "1.0.0", "v1.0", "1.0-rc1", "10.0"])
def test_another_version_is_refused_by_name_and_told_what_to_send(version: str) -> None:
    found = errors(event(schemaVersion=version))["/schemaVersion"]
    assert found.startswith(f"{version} is not supported; send 1.x")


@pytest.mark.parametrize("version", ["1.0\n", "1.٣", "latest version", "9" * 500])
def test_a_version_that_cannot_be_named_is_not_repeated(version: str) -> None:
    assert errors(event(schemaVersion=version))["/schemaVersion"].startswith("this version is not supported; send 1.x")


@pytest.mark.parametrize("name", ["call.paused", "call.", "call", "call.started ", "call.turn"])
def test_an_unknown_type_of_a_known_family_is_told_the_known_ones(name: str) -> None:
    found = errors(event(type=name))
    assert list(found) == ["/type"]
    assert re.findall(r"call\.[a-z_.]+", found["/type"]) == [known for known in TYPES if known.startswith("call.")]


@pytest.mark.parametrize("name", ["payment.made", "Call.started", "callstarted", ".started"])
def test_an_unknown_family_is_told_the_families(name: str) -> None:
    found = errors(event(type=name))
    assert list(found) == ["/type"]
    assert all(f"{family}.*" in found["/type"] for family in FAMILIES)


@pytest.mark.parametrize(("key", "limit"), [("eventId", 256), ("sessionId", 128)])
def test_an_id_is_measured_in_bytes(key: str, limit: int) -> None:
    fits = "é" * (limit // 2)
    assert accepted(event(**{key: fits}))[key] == fits
    assert errors(event(**{key: fits + "a"})) == {f"/{key}": f"must be at most {limit} bytes of UTF-8"}


def test_a_type_is_measured_in_bytes() -> None:
    assert errors(event(type="call." + "x" * 252)) == {"/type": "must be at most 256 bytes of UTF-8"}


@pytest.mark.parametrize("ts", ["2026-02-16T10:00:00Z", "2026-02-16T10:00:00.000+00:00"])
def test_ts_is_kept_as_sent_and_known_as_an_instant(ts: str) -> None:
    verdict = validate(event(ts=ts))
    assert isinstance(verdict, Valid)
    assert (verdict.event["ts"], verdict.instant) == (ts, 1_771_236_000_000_000_000)


@pytest.mark.parametrize("ts", ["2026-02-16T10:00:00", "2026-02-16T12:00:00+02:00", "2026-02-30T10:00:00Z", "now"])
def test_ts_is_in_utc(ts: str) -> None:
    assert list(errors(event(ts=ts))) == ["/ts"]


def test_all_errors_of_envelope_and_payload_are_collected() -> None:
    raw = {
        "eventId": "",
        "ts": "now",
        "timestamp": "now",
        "type": "call.ended",
        "version": "2.0",
        "actor": SECRET,
        "payload": {"callId": 1, "endedAt": SECRET, "durationSeconds": True, "endReason": SECRET},
    }
    found = errors(raw)
    assert set(found) == {
        "/eventId",
        "/sessionId",
        "/ts",
        "/timestamp",
        "/version",
        "/actor",
        "/payload/callId",
        "/payload/endedAt",
        "/payload/durationSeconds",
        "/payload/endReason",
    }
    assert SECRET not in str(found)


def test_the_errors_of_an_empty_event_name_every_key() -> None:
    assert list(errors({})) == [f"/{key}" for key in KEYS]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_the_committed_file_is_not_stale(path: Path) -> None:
    assert files()[path] == path.read_text(), "run: make generated"


@pytest.mark.parametrize("name", TYPES)
def test_the_published_schema_is_one_and_takes_its_own_example(name: str) -> None:
    published = json.loads((ROOT / "functions" / "replay" / "schemas.json").read_text())[name]
    Draft202012Validator.check_schema(published)
    for sample in published["examples"]:
        assert accepted(sample) == sample
        assert Draft202012Validator(published).is_valid(sample)
        assert not Draft202012Validator(published).is_valid({**sample, "actor": {}})
