"""C5, C7: operators steer quarantine and registry and see the tables, each as far as its token reaches."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application.editions import Editions
from millrace.lake.application.show_tables import ShowTables
from millrace.lake.application.steer_quarantine import MOST_FILES, SteerQuarantine
from millrace.lake.application.steer_registry import SteerRegistry
from millrace.lake.domain.archive import FOLDER, EventWriter, object_name, read_lines, sortable_time, time_in
from millrace.lake.domain.edition import EVENTS, PROCESSED, QUARANTINE, Edition, File, Segment
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Conflict, Forbidden, NotFound
from tests.unit.lake.test_quarantine import LINE

NOW = 1_770_000_000_000


def operator(
    *partitions: str,
    tenant: str = "acme",
    projects: tuple[str, ...] = ("demo",),
    roles: tuple[str, ...] = ("operator",),
) -> Identity:
    return Identity("ops", tenant, frozenset(projects), partitions or ("*",), frozenset(roles), tenant)


HUB = operator(tenant="default")


class Lake:
    """A store whose runs set lines aside, one file a run."""

    def __init__(self) -> None:
        self.objects = MemoryObjects()
        self.edition = Edition()

    def line(self, ledger: str, position: int = 4, **changes: Any) -> str:
        tenant = ledger.split("#")[1]
        content = {**LINE, "ledger": ledger, "tenant": tenant, "sequence_position": position, **changes}
        return json.dumps(content)

    def entry(self, id_: str, ledger: str | None, line: str | None = None, reason: str = "unknown_version") -> Any:
        if ledger is None:
            return {"id": id_, "reason": reason, "object": f"ledger/{id_}.jsonl.gz"}
        line = line or self.line(ledger)
        told = {"ledger": ledger, "sequence_position": 4, "event_type": "order.placed", "event_version": 9}
        digest = hashlib.sha256(line.encode()).hexdigest()
        return {"id": id_, "reason": reason, "object": "ledger/x", "line": line, "sha256": digest, "bytes": 5, **told}

    def publish(self, *entries: Any, processed: tuple[str, ...] = (), file: str = "one.gz") -> None:
        number = self.edition.number + 1
        run = f"r{number}"
        data = gzip.compress("".join(json.dumps(one) + "\n" for one in entries).encode())
        names = gzip.compress(json.dumps(list(processed)).encode())
        stored = {f"lake/runs/{run}/quarantine/{file}": data, f"lake/runs/{run}/processed/names.gz": names}
        segments = []
        for name, content in stored.items():
            self.objects.put(name, content)
            segments.append(Segment(run, len(entries), (File(name, len(content)),)))
        made = Edition(number, run, NOW + number, self.edition.tables, {"lines": len(entries)})
        if entries:
            made = made.having(QUARANTINE, [*made.segments(QUARANTINE), segments[0]])
        made = made.having(PROCESSED, [*made.segments(PROCESSED), segments[1]])
        made = made.having(EVENTS, [*made.segments(EVENTS), Segment(run, 10, (File(f"lake/{run}.parquet", 100),))])
        editions = Editions(self.objects)
        assert editions.publish(editions.current(), made)
        self.edition = made

    @property
    def quarantine(self) -> SteerQuarantine:
        return SteerQuarantine(self.objects, in_turn)

    def listed(self, who: Identity, limit: int = 50, *, every: bool = False, reason: str | None = None) -> list[str]:
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = self.quarantine.page(who, reason, after, limit, every=every)
            assert len(page["entries"]) <= limit
            found, after = found + [one["id"] for one in page["entries"]], page["next"]
        return found

    def archived(self) -> list[Any]:
        names = [one.name for one in self.objects.list(FOLDER)]
        return [line for name in names for line in read_lines(self.objects.stored[name])]


@pytest.fixture
def lake() -> Lake:
    made = Lake()
    made.publish(
        made.entry("orders", "catalog#acme#orders"),
        made.entry("bills", "catalog#acme#bills", reason="malformed"),
        made.entry("demo", "sync#acme#demo"),
        made.entry("secret", "sync#acme#secret"),
    )
    made.publish(made.entry("foreign", "catalog#other#orders"), made.entry("mine", "catalog#default#orders"))
    made.publish(made.entry("object", None, reason="corrupt_object"), file="objects.gz")
    return made


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_a_token_sees_the_lines_of_ledgers_that_it_reaches_and_no_others(lake: Lake, limit: int) -> None:
    assert lake.listed(operator(), limit) == ["orders", "bills", "demo"]
    assert lake.listed(operator("catalog:orders", "orders"), limit) == ["orders"]
    assert lake.listed(operator(tenant="other"), limit) == ["foreign"]
    assert lake.listed(HUB, limit) == ["mine", "object"]
    assert lake.listed(operator("catalog:*", tenant="default"), limit) == ["mine"]
    assert lake.listed(operator(), limit, reason="malformed") == ["bills"]


def test_an_entry_says_where_it_belongs_and_is_shown_with_its_line(lake: Lake) -> None:
    page = lake.quarantine.page(operator("catalog:orders"), None, "", 50, every=False)
    assert page == {
        "entries": [
            {
                "id": "orders",
                "reason": "unknown_version",
                "field": None,
                "contract": "catalog",
                "scope": "orders",
                "position": 4,
                "event_type": "order.placed",
                "event_version": 9,
                "idempotency_key": None,
                "bytes": 5,
                "object": "ledger/x",
                "redriven": None,
            }
        ],
        "complete": True,
        "next": None,
    }
    assert json.loads(lake.quarantine.show(operator(), "orders")["line"])["ledger"] == "catalog#acme#orders"
    for who, id_ in ((operator(), "foreign"), (operator("catalog:orders"), "bills"), (operator(), "nobody")):
        with pytest.raises(NotFound):
            lake.quarantine.show(who, id_)


def test_what_is_driven_again_goes_into_the_archive_and_out_of_the_list(lake: Lake) -> None:
    done = lake.quarantine.redrive(operator(), {"reason": "unknown_version"})
    assert (set(done["redriven"]), done["next"]) == ({"orders", "demo"}, None)
    assert {line["ledger"] for line in lake.archived()} == {"catalog#acme#orders", "sync#acme#demo"}
    assert lake.listed(operator()) == ["bills"]
    assert lake.listed(operator(), every=True) == ["orders", "bills", "demo"]
    before = dict(lake.objects.stored)
    assert lake.quarantine.redrive(operator(), {"ids": ["orders"]})["redriven"].keys() == {"orders"}
    assert lake.objects.stored == before, "again changes nothing"


def test_nobody_drives_again_what_it_may_not_see(lake: Lake) -> None:
    before = dict(lake.objects.stored)
    for who, id_ in ((operator(), "foreign"), (operator(), "object"), (operator("catalog:orders"), "bills")):
        with pytest.raises(NotFound):
            lake.quarantine.redrive(who, {"ids": [id_]})
    assert lake.objects.stored == before


def test_a_repair_may_name_only_ledgers_that_the_token_reaches(lake: Lake) -> None:
    narrow = operator("catalog:orders")
    for ledger in ("catalog#acme#bills", "catalog#other#orders", "sync#acme#demo"):
        with pytest.raises(Forbidden, match="does not reach"):
            lake.quarantine.repair(narrow, "orders", {"lines": [json.loads(lake.line(ledger))]})
    assert lake.archived() == []
    good = json.loads(lake.line("catalog#acme#orders", event_version=1))
    assert lake.quarantine.repair(narrow, "orders", {"lines": [good]})["redriven"].keys() == {"orders"}
    assert [line["event_version"] for line in lake.archived()] == [1]
    with pytest.raises(BadRequest):
        lake.quarantine.repair(operator(), "bills", {"lines": [{**LINE, "ledger": "catalog#acme#bills", "source": 5}]})


def test_who_runs_the_hub_gives_the_lines_of_an_object_that_cannot_be_read(lake: Lake) -> None:
    lines = [json.loads(lake.line(ledger)) for ledger in ("catalog#acme#orders", "catalog#other#orders")]
    with pytest.raises(NotFound):
        lake.quarantine.repair(operator(), "object", {"lines": lines})
    lake.quarantine.repair(HUB, "object", {"lines": lines})
    assert [line["ledger"] for line in lake.archived()] == ["catalog#acme#orders", "catalog#other#orders"]


def test_a_page_reads_only_so_many_files_and_the_next_goes_on() -> None:
    lake = Lake()
    for number in range(MOST_FILES + 3):
        lake.publish(lake.entry(f"e{number}", f"catalog#{'acme' if number > MOST_FILES else 'other'}#orders"))
    first = lake.quarantine.page(operator(), None, "", 50, every=False)
    assert first["entries"] == []
    assert first["next"] is not None
    assert lake.listed(operator()) == [f"e{MOST_FILES + 1}", f"e{MOST_FILES + 2}"]
    with pytest.raises(Conflict):
        lake.quarantine.page(operator(), None, "lake/runs/gone/quarantine/one.gz#0", 50, every=False)
    with pytest.raises(BadRequest):
        lake.quarantine.page(operator(), None, "nowhere", 50, every=False)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "ids"),
        ({"ids": ["a"], "reason": "b"}, "ids"),
        ({"ids": []}, "ids"),
        ({"ids": [7]}, "ids"),
        ({"reason": 7}, "reason"),
        ({"reason": "a", "after": 7}, "after"),
        ({"reason": "a", "x": 1}, "x"),
    ],
)
def test_a_re_drive_that_breaks_a_rule_is_told_which_field(lake: Lake, body: Any, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        lake.quarantine.redrive(operator(), body)
    assert refused.value.details["field"] == field


@pytest.mark.parametrize("body", [[], {}, {"lines": []}, {"lines": [7]}, {"lines": [{}], "x": 1}])
def test_a_repair_takes_lines_and_nothing_else(lake: Lake, body: Any) -> None:
    with pytest.raises(BadRequest):
        lake.quarantine.repair(operator(), "orders", body)


def test_the_registry_is_read_by_operators_and_put_by_those_who_run_the_hub() -> None:
    registry = SteerRegistry(MemoryObjects())
    content: dict[str, Any] = {"types": {"order.placed": {"versions": {"1": {}, "2": {}}}}}
    assert registry.read(operator("orders")) == {"registry": None, "types": 0, "versions": 0, "policy": "quarantine"}
    for who in (operator(), operator("catalog:*", tenant="default")):
        with pytest.raises(Forbidden):
            registry.put(who, json.dumps(content).encode())
    told = {"types": 1, "versions": 2, "policy": "quarantine"}
    assert registry.put(HUB, json.dumps(content).encode()) == told
    assert registry.read(operator()) == {"registry": content, **told}
    with pytest.raises(BadRequest):
        registry.put(HUB, b'{"types": {"a": {"versions": {}}}}')
    assert registry.read(operator())["registry"] == content


def test_tables_tell_their_runs_and_what_waits(lake: Lake) -> None:
    names = [f"{FOLDER}{sortable_time(NOW + number)}-{number}.jsonl.gz" for number in range(5)]
    for name in names:
        lake.objects.put(name, b"12345")
    lake.publish(processed=tuple(names[:2]))
    lake.quarantine.redrive(operator(), {"ids": ["orders"]})
    shown = ShowTables(lake.objects)(HUB)
    assert (shown["edition"], shown["run"], shown["published_ms"]) == (4, "r4", NOW + 4)
    assert shown["tables"][0] == {"table": "events", "rows": 40, "files": 4, "bytes": 400}
    assert [(one["edition"], one["run"], one["counts"]) for one in shown["runs"]] == [
        (4, "r4", {"lines": 0}), (3, "r3", {"lines": 1}), (2, "r2", {"lines": 2}), (1, "r1", {"lines": 4}),
    ]  # fmt: skip
    assert shown["waiting"] == {"objects": 3, "bytes": 15, "oldest_ms": NOW + 2, "more": False}
    assert shown["quarantine"] == {"lines": 6, "objects": 1, "redriven": 1}
    narrow = ShowTables(lake.objects)(operator())
    assert (narrow["edition"], narrow["tables"], narrow["waiting"], narrow["quarantine"]) == (4, None, None, None)
    assert [one["counts"] for one in narrow["runs"]] == [None] * 4


def test_before_the_first_compaction_everything_waits() -> None:
    lake = Lake()
    writer = EventWriter()
    writer.add_line(LINE)
    made = writer.finish()
    lake.objects.put(made.name, made.data)
    shown = ShowTables(lake.objects)(HUB)
    assert (shown["edition"], shown["run"], shown["runs"], shown["waiting"]["objects"]) == (0, None, [], 1)
    assert shown["waiting"]["oldest_ms"] == LINE["committed_at"]


def test_a_run_that_was_overtaken_is_not_told_of(lake: Lake) -> None:
    lake.objects.put("lake/manifests/0000000002-r0.json", Edition(2, "r0", NOW).to_json())
    assert [one["run"] for one in ShowTables(lake.objects)(HUB)["runs"]] == ["r3", "r2", "r1"]


def test_the_time_of_an_object_is_in_its_name() -> None:
    assert time_in(object_name(NOW, {})) == NOW
    assert time_in("ledger/not-a-time.jsonl.gz") is None
    assert time_in("elsewhere/01K0000000") is None


def test_who_is_no_operator_is_refused(lake: Lake) -> None:
    consumer = operator(tenant="default", roles=("consumer", "producer"))
    calls: tuple[Callable[[], Any], ...] = (
        lambda: lake.quarantine.page(consumer, None, "", 50, every=False),
        lambda: lake.quarantine.show(consumer, "orders"),
        lambda: lake.quarantine.redrive(consumer, {"ids": ["orders"]}),
        lambda: lake.quarantine.repair(consumer, "orders", {"lines": [{}]}),
        lambda: SteerRegistry(lake.objects).read(consumer),
        lambda: SteerRegistry(lake.objects).put(consumer, b"{}"),
        lambda: ShowTables(lake.objects)(consumer),
    )
    for call in calls:
        with pytest.raises(Forbidden):
            call()
