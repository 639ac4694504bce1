"""The journal on every adapter: capture, coalescing, opt-out, gc and archive."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.targets import Target
from millrace.ledger.domain.errors import Conflict, Unavailable
from millrace_client.journal import archive_file
from millrace_client.journal.archive_file import ArchiveFolder, read
from millrace_client.journal.capture import Capture
from millrace_client.journal.collect import Archive, Collected, Gc
from millrace_client.journal.memory.journal import MemoryJournal
from millrace_client.journal.sqlite.journal import SqliteJournal
from tests.support.worlds import A, B, Scripted, World, event, results


def retained(world: World) -> list[str]:
    return [one.event_id for one in world.payloads.retained()]


def audits(world: World) -> list[tuple[str, str]]:
    if isinstance(world.journal, MemoryJournal):
        return [(what, subject) for what, subject, _ in world.journal.audits]
    assert isinstance(world.journal, SqliteJournal)
    return list(world.journal.database.connection.execute("SELECT what, subject FROM audit ORDER BY number"))


def test_the_same_event_again_is_known_and_other_content_is_a_conflict_that_undoes_the_batch(world: World) -> None:
    world.capture("e1", n=1)
    again = Capture(world.journal, Families(), world.clock)([captured(event("e1", n=1)), captured(event("e2"))])
    assert [(one.event_id, one.fresh) for one in again.taken] == [("e1", False), ("e2", True)]
    for clash in ([event("e3"), event("e1", n=2)], [event("e4"), event("e4", n=2)]):
        with pytest.raises(Conflict) as conflict:
            Capture(world.journal, Families(), world.clock)([captured(body) for body in clash])
        assert conflict.value.details["event_id"] in ("e1", "e4")
    assert retained(world) == ["e1", "e2"]


def test_until_a_first_attempt_a_newer_event_takes_the_place_of_the_older(world: World) -> None:
    """D5: under its own id, with the old one's bytes and superseded_by kept."""
    world.capture("cart-1", key="cart")
    world.capture("other", key="else")
    world.capture("cart-2", key="cart")
    world.capture("cart-3", key="cart")
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["other", "cart-3"]
    superseded = {one.event_id for one in world.payloads.retained() if one.superseded}
    assert superseded == {"cart-1", "cart-2"}
    assert retained(world) == ["cart-1", "other", "cart-2", "cart-3"]


@pytest.mark.parametrize("status", ["success", "duplicate", "pending", "rejected", "transient", "terminal_failed"])
def test_coalescing_against_an_attempted_event_leaves_its_bytes_unchanged(world: World, status: str) -> None:
    """Required: Coalescing against a delivered event leaves original bytes unchanged."""
    world.capture("cart-1", key="cart", items=1)
    receiver = Scripted([results(**{"cart-1": status})])
    world.drain(receiver)
    world.capture("cart-2", key="cart", items=2)
    world.clock.ahead(86_400_000)
    world.drain(receiver)
    world.drain(receiver, B)
    by_id = {one.event_id: one for one in world.payloads.retained()}
    assert not by_id["cart-1"].superseded
    assert world.payloads.bodies([by_id["cart-1"].position]) == {by_id["cart-1"].position: event("cart-1", items=1)}
    assert receiver.sent[-2:] == ["cart-1", "cart-2"]


def test_an_attempt_that_has_begun_freezes_even_if_nobody_learns_how_it_ended(world: World) -> None:
    """D5: kill -9 after the request left: the next event with the key must not replace what may have arrived."""
    world.capture("cart-1", key="cart")
    world.know(A)
    [ledger] = world.ledger.ledgers(A, world.clock())
    chosen = world.ledger.select(A, ledger, world.clock(), 10, 1000)
    assert [pick.event_id for pick in world.ledger.begin(A, ledger, chosen.picks)] == ["cart-1"]
    world.capture("cart-2", key="cart")
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["cart-1", "cart-2"]


def test_an_event_replaced_between_selection_and_attempt_is_left_out(world: World) -> None:
    """D5."""
    world.capture("cart-1", key="cart")
    world.know(A)
    [ledger] = world.ledger.ledgers(A, world.clock())
    chosen = world.ledger.select(A, ledger, world.clock(), 10, 1000)
    world.capture("cart-2", key="cart")
    assert world.ledger.begin(A, ledger, chosen.picks) == []


def test_opt_out_of_a_teamspace_family_keeps_the_fact_and_says_so(world: World) -> None:
    """Required: Opt-out of a Teamspace-bound family does not silently drop the fact."""
    rules = Families({"debug.": Family.DISCARDABLE, "here.": Family.LOCAL_ONLY}, frozenset({"order.", "debug."}))
    events = [("o", "order.paid"), ("d", "debug.trace"), ("h", "here.note"), ("n", "note")]
    report = Capture(world.journal, rules, world.clock)([captured(event(id_, kind)) for id_, kind in events])
    assert (report.discarded, report.kept_despite_opt_out) == (["d"], ["o"])
    assert retained(world) == ["o", "h", "n"]
    assert audits(world) == [("opt_out_discarded", "d"), ("opt_out_refused", "o")]
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["o", "n"]


def test_what_may_be_a_teamspace_fact_is_kept_until_it_can_be_told() -> None:
    rules = Families(otherwise=Family.UNDECIDED)
    assert rules.of("anything") is Family.UNDECIDED
    assert not Target("t", "stub").wants("anything", Family.UNDECIDED)


def test_delivery_never_deletes_and_gc_takes_what_every_target_has(world: World) -> None:
    """D3."""
    world.capture("e1", "e2", "e3")
    world.drain(Scripted([results(e1="success", e2="duplicate", e3="rejected")]), A)
    assert retained(world) == ["e1", "e2", "e3"]
    world.drain(Scripted([results(e1="success", e2="pending", e3="success")]), B)
    gc = Gc(world.payloads, world.clock)
    size = len(event("e1"))
    assert gc(dry_run=True) == gc() == Collected(1, size)
    assert retained(world) == ["e2", "e3"]
    assert gc() == Collected()
    assert world.statuses(A)["e1"] == world.statuses(B)["e1"] == "success"
    world.capture("e1")
    assert retained(world) == ["e2", "e3"], "its id and digest are remembered"


def test_gc_does_nothing_without_a_target(world: World) -> None:
    world.capture("e1")
    assert Gc(world.payloads, world.clock)() == Collected()


def test_a_superseded_event_goes_with_the_one_that_took_its_place(world: World) -> None:
    world.capture("cart-1", key="cart")
    world.capture("cart-2", key="cart")
    gc = Gc(world.payloads, world.clock)
    world.know(A)
    assert gc().events == 0
    world.drain(Scripted())
    assert gc().events == 2


def test_a_later_target_does_not_get_what_was_removed_and_gets_the_rest(world: World) -> None:
    world.capture("e1", "e2")
    world.drain(Scripted([results(e1="success", e2="terminal_failed")]), A)
    Gc(world.payloads, world.clock)()
    receiver = Scripted()
    assert world.drain(receiver, B).complete
    assert receiver.sent == ["e2"]


def test_archive_takes_what_nobody_waits_for_and_only_after_its_file_is_verified(world: World, tmp_path: Path) -> None:
    """D3: delivered everywhere, or wanted nowhere; the bytes in the file are the bytes that were captured."""
    world.families = Families({"here.": Family.LOCAL_ONLY})
    world.capture("e1", text="é")
    world.capture("kept", kind="here.note")
    world.drain(Scripted(), A)
    world.capture("waits")
    archive = Archive(world.payloads, ArchiveFolder(tmp_path / "archive"), world.clock)
    assert archive(dry_run=True).files == []
    done = archive()
    [file] = done.files
    assert dict(read(Path(file))) == {"e1": event("e1", text="é"), "kept": event("kept", "here.note")}
    assert retained(world) == ["waits"]
    assert [path.name for path in (tmp_path / "archive").iterdir()] == [Path(file).name]
    assert world.statuses(A) == {"e1": "success"}


def test_archive_may_leave_what_is_young(world: World, tmp_path: Path) -> None:
    world.capture("old")
    world.clock.ahead(1000)
    world.capture("young")
    world.drain(Scripted(), A)
    assert Archive(world.payloads, ArchiveFolder(tmp_path), world.clock)(before_ms=world.clock()).events == 1
    assert retained(world) == ["young"]


def test_a_file_that_cannot_be_written_or_verified_removes_nothing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    world.capture("e1")
    world.drain(Scripted(), A)
    with pytest.raises(Unavailable):
        Archive(world.payloads, ArchiveFolder(tmp_path / "file"), world.clock)()
    lies = gzip.compress(b'{"event_id":"e1","event":"other bytes"}\n')
    monkeypatch.setattr(archive_file, "_write_durably", lambda file, content: file.write_bytes(lies))
    with pytest.raises(Unavailable):
        Archive(world.payloads, ArchiveFolder(tmp_path / "archive"), world.clock)()
    assert retained(world) == ["e1"]
