"""`millrace rebuild`: what State and the index had is there again, or named as lost. The log is the only truth."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.ports.targets import Position
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.names import Ledger, ledger_named
from millrace.ledger.domain.page import Draft
from millrace.ledger.ports import Claim
from millrace.operators.application.rebuild_ledger import QUIET_MS, quiet_end
from millrace.operators.domain.rebuilt import EXAMPLES, MEANINGS, UNKNOWN, Rebuilt
from millrace.sync.adapters.memory import MemoryIndex
from tests.contract.delivery.test_targets import target
from tests.unit.lake.archiving import Died, Fate, prove
from tests.unit.operators.rebuilding import World

DEMO, CALL, DEVICE, ORDERS = "sync#t#demo", "realtime#t#call", "streams#t#rt#main", "catalog#t#orders"
PARTITIONS = (("a",), ("a", "b"), ("c",))


@pytest.fixture
def world() -> World:
    """Ledgers of four contracts, read to their ends by everybody; the project's oldest events are pruned."""
    world = World()
    world.commit(DEMO, 1_300, PARTITIONS, per_page=100)
    for ledger, count in ((CALL, 5), (DEVICE, 3), (ORDERS, 7)):
        world.commit(ledger, count)
    world.catch_up()
    Prune(world.hub.log, world.hub.state, ())(Ledger.to_read(DEMO), 1_050)
    world.hub.now += 2 * QUIET_MS
    return world


def test_every_read_floor_and_cursor_is_as_before(world: World) -> None:
    wanted = (["a"], ["b"], ["c"], ["a", "c"], None)
    reads = [world.read(DEMO, partitions) for partitions in wanted]
    before = world.lose()
    report = world.rebuild()
    assert [world.read(DEMO, partitions) for partitions in wanted] == reads
    assert {name: ledger.dedupe_scope for name, ledger in world.hub.state.registry.items()} == {
        DEMO: DEMO,
        CALL: "realtime#t",
        DEVICE: DEVICE,
        ORDERS: ORDERS,
    }
    assert world.hub.state.floors == before.floors
    assert world.hub.state.cursors == before.cursors
    assert report.sound
    assert (report.counts["ledgers"], report.counts["forgotten"]) == (4, 4)


def test_the_index_is_used_again_and_not_only_the_log(world: World) -> None:
    world.lose()
    world.rebuild()
    assert {partition for _, partition in world.index.rows} == {"a", "b", "c"}
    assert world.hub.state.marks(Ledger.to_read(DEMO)).cursors["index"] == 1_300


def test_the_time_index_of_a_session_is_as_it_was(world: World) -> None:
    world.commit(CALL, 2_100, per_page=100)
    world.catch_up()
    rows, noted = world.times.rows, world.times.noted
    assert [note.bucket for note in noted[CALL].values()] == [0, 1]
    world.lose()
    assert world.rebuild(dry_run=True).counts["index rows"]
    assert not world.times.rows
    world.rebuild()
    assert (world.times.rows, world.times.noted) == (rows, noted)


def test_an_index_that_alone_was_lost_is_written_again_below_its_cursor(world: World) -> None:
    """S6: the cursor says that there are rows, so a read without them would miss events."""
    before = world.read(DEMO, ["b"])
    world.index = MemoryIndex()
    assert world.read(DEMO, ["b"]) != before
    report = world.rebuild()
    assert world.read(DEMO, ["b"]) == before
    assert not report.counts["forgotten"]
    assert not report.unknown(), "State is as it was: nothing of it is unknown"


def test_a_second_run_changes_nothing(world: World) -> None:
    world.lose()
    world.rebuild()
    floors, cursors, rows = dict(world.hub.state.floors), dict(world.hub.state.cursors), dict(world.index.rows)
    report = world.rebuild()
    assert (world.hub.state.floors, world.hub.state.cursors, world.index.rows) == (floors, cursors, rows)
    assert not {"cursors raised", "floors raised", "archive cursors raised", "claims lowered"} & report.counts.keys()


def test_nothing_that_went_on_meanwhile_goes_back(world: World) -> None:
    world.lose()
    ledger = Ledger.to_read(ORDERS)
    world.hub.state.move_cursor(ledger, "fan_out", 0, 7)
    world.hub.state.raise_floor(Ledger.to_read(DEMO), 1_200)
    world.rebuild()
    assert world.hub.state.marks(ledger).cursors["fan_out"] == 7
    assert world.hub.state.marks(Ledger.to_read(DEMO)).floor == 1_200


@pytest.mark.parametrize("after_effect", [False, True])
def test_a_run_that_is_killed_anywhere_goes_on_and_ends_the_same(after_effect: bool) -> None:
    whole = World()
    _fill(whole)
    before = whole.lose()
    counting = Fate()
    whole.rebuild(counting)
    assert whole.hub.state.cursors == before.cursors
    for at in range(0, counting.calls, 3):
        world = World()
        _fill(world)
        world.lose()
        with pytest.raises(Died):
            world.rebuild(Fate(at, after_effect))
        world.rebuild()
        assert world.hub.state.cursors == whole.hub.state.cursors
        assert world.hub.state.registry == whole.hub.state.registry
        assert {key: set(rows) for key, rows in world.index.rows.items()} == {
            key: set(rows) for key, rows in whole.index.rows.items()
        }
        assert world.place.content is None, "a complete run leaves no place behind"


def _fill(world: World) -> None:
    world.commit(DEMO, 30, PARTITIONS)
    world.commit(ORDERS, 4)
    world.catch_up()
    world.hub.now += 2 * QUIET_MS


def test_a_run_that_goes_on_does_not_begin_again(world: World) -> None:
    rest, whole = Fate(), Fate()
    world.rebuild(whole)
    with pytest.raises(Died):
        world.rebuild(Fate(whole.calls - 10))
    world.rebuild(rest)
    assert rest.calls < whole.calls // 2


def test_it_ends_with_what_it_counted_before_it_was_killed(world: World) -> None:
    dry = Fate()
    world.lose()
    world.rebuild(dry, dry_run=True)
    with pytest.raises(Died):
        world.rebuild(Fate(dry.calls - 10))
    report = world.rebuild()
    assert report.counts["archive objects"] == len(list(world.hub.objects.list("ledger/")))
    assert report.unknown()


def test_a_dry_run_writes_nothing_and_tells_the_same(world: World) -> None:
    world.lose()
    told = world.rebuild(dry_run=True)
    assert not world.hub.state.registry
    assert not world.hub.state.cursors
    assert not world.hub.state.floors
    assert not world.index.rows
    assert world.place.saves == 0
    done = world.rebuild()
    assert told.unknown() == done.unknown()
    assert _but_cursors(told) == _but_cursors(done)


def _but_cursors(report: Rebuilt) -> dict[str, int]:
    """A cursor is raised by several: nobody knows before how often it takes effect."""
    return {what: number for what, number in report.counts.items() if "cursors" not in what}


def test_the_archive_goes_on_without_a_gap_or_a_repeat() -> None:
    """C3: with no cursor it would archive everything once more."""
    world = World()
    world.commit(ORDERS, 40)
    world.commit(DEMO, 20, PARTITIONS)
    world.catch_up()
    world.commit(ORDERS, 5)
    world.lose()
    world.rebuild()
    world.hub.archiver()(world.hub.ledgers())
    prove(world.hub)


def test_what_was_pruned_from_the_archive_too_does_not_count_as_lost() -> None:
    world = World()
    world.commit(ORDERS, 9)
    world.catch_up()
    Prune(world.hub.log, world.hub.state, ())(Ledger.to_read(ORDERS), 9)
    world.hub.objects.stored.clear()
    world.lose()
    world.rebuild()
    assert world.hub.cursor(Ledger.to_read(ORDERS)) == 9
    assert world.hub.archiver()(world.hub.ledgers()).lost == 0


def test_the_fan_out_reads_again_what_somebody_who_listens_may_lack() -> None:
    """S11: a connection that is open now must not miss an event that was committed since it opened."""
    world = World()
    world.commit(DEMO, 1_500, PARTITIONS, per_page=128)
    young = world.hub.now
    world.commit(DEMO, 100, PARTITIONS, per_page=128)
    world.lose()
    world.hub.now = young + QUIET_MS + 1
    world.rebuild()
    cursor = world.hub.state.marks(Ledger.to_read(DEMO)).cursors["fan_out"]
    assert 0 < cursor <= 1_500
    assert world.hub.log.holding(Ledger.to_read(DEMO), cursor + 1).first == cursor + 1  # type: ignore[union-attr]


def test_a_quiet_ledger_counts_as_sent_and_a_young_one_does_not() -> None:
    world = World()
    world.commit(ORDERS, 5)
    ledger = Ledger.to_read(ORDERS)
    assert quiet_end(world.hub.log, ledger, 5, world.hub.now + 1) == 5
    assert quiet_end(world.hub.log, ledger, 5, 0) == 0


def test_a_claim_that_knows_more_than_the_restored_log_is_lowered() -> None:
    """S5, S4: else its id would be committed behind a hole, or a second time."""
    world = World()
    world.commit(ORDERS, 9)
    pages = world.hub.log.pages[ORDERS]
    for first in (4, 7):
        del pages[first]
    assert world.hub.claims.items[ORDERS, f"{ORDERS}-e9"].seen == 6
    world.lose()
    report = world.rebuild()
    assert report.counts["claims lowered"] == 3, "those of the last page; the others' `seen` is in the log"
    world.hub.heads = Heads(lambda: world.hub.now)
    world.commit(ORDERS, 6)
    assert [event.position for event in world.hub.events().values()] == list(range(1, 10))


def test_an_id_in_the_log_whose_claim_was_lost_gets_it_back() -> None:
    """S5: else it could be committed a second time."""
    world = World()
    world.commit(ORDERS, 9)
    for number in (7, 8, 9):
        del world.hub.claims.items[ORDERS, f"{ORDERS}-e{number}"]
    world.lose()
    report = world.rebuild()
    assert report.counts["claims put back"] == 3
    assert world.hub.claims.items[ORDERS, f"{ORDERS}-e9"] == Claim(ORDERS, 6)


def test_claims_are_left_alone_where_they_are_known_to_be_right() -> None:
    world = World()
    world.commit(ORDERS, 3)
    world.hub.claims.items.clear()
    world.lose()
    world.rebuild(with_claims=False)
    assert not world.hub.claims.items


def test_a_state_that_is_newer_than_the_log_is_told(world: World) -> None:
    world.hub.log.pages[ORDERS].popitem()
    report = world.rebuild()
    assert not report.sound
    assert report.found["cursors_ahead"] == [f"{ORDERS} archive 7, newest 6", f"{ORDERS} fan_out 7, newest 6"]


def test_a_target_that_stands_above_the_log_is_told(world: World) -> None:
    """D4: it would never get the events that come at these positions."""
    chosen: HubTarget = target("late", "t")
    world.directory.put(chosen, None)
    world.positions.positions[chosen.target().id, ORDERS] = Position(9)
    world.positions.positions[chosen.target().id, CALL] = Position(5)
    report = world.rebuild()
    assert not report.sound
    [told] = report.found["targets_ahead"]
    assert (told.endswith(f"in {ORDERS} 9, newest 7"), "late" in told) == (True, True)


def test_an_archive_that_has_more_than_the_log_is_told(world: World) -> None:
    world.hub.log.pages[ORDERS].popitem()
    world.lose()
    report = world.rebuild()
    assert report.found["archive_ahead"] == [f"{ORDERS} 7-7"]
    assert world.hub.cursor(Ledger.to_read(ORDERS)) == 6


def test_an_archive_object_that_cannot_be_read_is_named_and_holds_nothing_up(world: World) -> None:
    world.hub.objects.stored["ledger/0-broken.jsonl.gz"] = b"not gzip"
    world.lose()
    report = world.rebuild()
    assert report.found["unreadable_objects"] == ["ledger/0-broken.jsonl.gz"]
    assert world.hub.cursor(Ledger.to_read(ORDERS)) == 7


def test_a_ledger_that_cannot_be_read_is_named_and_holds_no_other_up(world: World) -> None:
    page = world.hub.log.pages[DEVICE][1]
    broken = replace(page.records[0], body=b"no JSON")
    world.hub.log.pages[DEVICE][1] = replace(page, records=(broken, *page.records[1:]))
    world.lose()
    report = world.rebuild()
    assert report.found["unreadable_ledgers"] == [DEVICE]
    assert set(world.hub.state.registry) == {DEMO, CALL, ORDERS}


def test_what_was_in_state_alone_is_named_for_the_contracts_that_are_there(world: World) -> None:
    Prune(world.hub.log, world.hub.state, ())(Ledger.to_read(CALL), 2)
    world.lose()
    report = world.rebuild()
    assert [one.what for one in report.unknown()] == [one.what for one in UNKNOWN]
    assert report.found["pruned_sessions"] == [CALL]
    other = World()
    other.commit(DEMO, 1, PARTITIONS)
    other.lose()
    assert {one.what for one in other.rebuild().unknown()} == {one.what for one in UNKNOWN if not one.contract}


def test_a_report_keeps_the_first_names_counts_all_and_survives_being_stored() -> None:
    report = Rebuilt()
    for number in range(EXAMPLES + 5):
        report.find("pruned_sessions", f"s{number}")
    report.find("pruned_sessions", "s0")
    report.count("ledgers", 3)
    stored = json.loads(json.dumps(report.as_json()))
    assert stored["findings"]["pruned_sessions"]["count"] == EXAMPLES + 5
    assert len(stored["findings"]["pruned_sessions"]["names"]) == EXAMPLES
    assert Rebuilt.of(stored).as_json() == stored
    assert stored["findings"]["pruned_sessions"]["means"] == MEANINGS["pruned_sessions"]


@pytest.mark.parametrize("name", [DEMO, CALL, DEVICE, ORDERS, "audit#t#rt", "delivery#t#team", "realtime#a%23b#s%25"])
def test_a_ledgers_name_tells_its_dedupe_scope(name: str) -> None:
    scope = name.rpartition("#")[0] if name.startswith("realtime") else name
    assert ledger_named(name) == Ledger(name, scope)


def test_a_claim_that_knows_more_than_the_log_makes_no_hole_even_before_a_rebuild() -> None:
    """S4: a restored log may be older than its claims."""
    world = World()
    world.commit(ORDERS, 9)
    for first in (4, 7):
        del world.hub.log.pages[ORDERS][first]
    world.lose()
    world.hub.heads = Heads(lambda: world.hub.now)
    draft = Draft(f"{ORDERS}-e9", b"d" * 17, b"{}")
    world.hub.commit_drafts(ORDERS, [draft])
    assert sorted(world.hub.log.pages[ORDERS]) == [1, 4], "the id's claim has seen 6"
