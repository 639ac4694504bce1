from __future__ import annotations

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Marks
from millrace.sync.ports import Hit, IndexRow
from tests.contract.conftest import Adapters

LEDGER = Ledger.of("sync", "default", "demo")


def test_a_registered_ledger_is_listed_once(adapters: Adapters) -> None:
    ledgers = [Ledger(f"L{n}", f"scope{n % 3}") for n in range(40)]
    for ledger in [*ledgers, ledgers[0]]:
        adapters.state.register(ledger)
    assert sorted(adapters.state.ledgers(), key=lambda ledger: ledger.name) == sorted(ledgers, key=lambda one: one.name)


def test_an_unknown_ledger_has_no_marks(adapters: Adapters) -> None:
    assert adapters.state.marks(LEDGER) == Marks({}, 1)
    assert adapters.state.marks(LEDGER).hint == 0


def test_a_cursor_moves_only_from_where_it_was_seen(adapters: Adapters) -> None:
    assert adapters.state.move_cursor(LEDGER, "index", 0, 5)
    assert not adapters.state.move_cursor(LEDGER, "index", 0, 9)
    assert adapters.state.move_cursor(LEDGER, "index", 5, 9)
    assert adapters.state.move_cursor(LEDGER, "archive", 0, 3)
    assert adapters.state.marks(LEDGER) == Marks({"index": 9, "archive": 3}, 1)
    assert adapters.state.marks(LEDGER).hint == 9


def test_the_floor_rises_and_never_falls(adapters: Adapters) -> None:
    for to in (4, 2, 9, 8):
        adapters.state.raise_floor(LEDGER, to)
    assert adapters.state.marks(LEDGER).floor == 9


def row(start: int, end: int, *positions: int, partition: str = "a") -> IndexRow:
    return IndexRow(partition, start, end, [Hit(position, position - position % 2) for position in positions])


def test_index_rows_are_read_in_order_of_their_end(adapters: Adapters) -> None:
    rows = [row(1, 4, 2, 3), row(1, 9, 2, 3, 8), row(10, 1000, 999)]
    adapters.index.write(LEDGER, [rows[2], rows[0], rows[1], row(1, 9, 4, partition="b")])
    assert list(adapters.index.read(LEDGER, "a", 0, 10).rows) == rows
    assert list(adapters.index.read(LEDGER, "a", 4, 10).rows) == rows[1:]
    assert list(adapters.index.read(LEDGER, "a", 9, 10).rows) == rows[2:]
    assert list(adapters.index.read(LEDGER, "c", 0, 10).rows) == []


def test_the_last_index_row_that_ends_before_a_position_is_found_by_one_read(adapters: Adapters) -> None:
    rows = [row(1, 4, 2, 3), row(1, 9, 2, 3, 8), row(5, 9, 8), row(10, 1000, 999)]
    adapters.index.write(LEDGER, [*rows, row(1, 7, 4, partition="b")])
    found = {position: adapters.index.before(LEDGER, "a", position) for position in (4, 5, 9, 10, 1000, 1001)}
    assert found == {4: None, 5: rows[0], 9: rows[0], 10: rows[2], 1000: rows[2], 1001: rows[3]}
    assert adapters.index.before(LEDGER, "c", 10) is None


def test_a_limited_index_read_says_that_it_is_truncated(adapters: Adapters) -> None:
    adapters.index.write(LEDGER, [row(1, 4, 2), row(5, 9, 8)])
    limited = adapters.index.read(LEDGER, "a", 0, 1)
    assert (list(limited.rows), limited.truncated) == ([row(1, 4, 2)], True)


def test_writing_a_row_again_changes_nothing(adapters: Adapters) -> None:
    many = [row(1, 4, 2, partition=f"p{n}") for n in range(60)]
    for _ in range(2):
        adapters.index.write(LEDGER, many)
    assert [list(adapters.index.read(LEDGER, r.partition, 0, 5).rows) for r in many] == [[r] for r in many]


def test_partitions_and_ledgers_with_telling_names_are_kept_apart(adapters: Adapters) -> None:
    adapters.index.write(Ledger.of("a", "b#c"), [row(1, 4, 2, partition="d")])
    assert not adapters.index.read(Ledger.of("a", "b"), "c#d", 0, 5).rows


def test_a_window_in_which_a_ledger_was_noted_is_told_with_its_cursors(adapters: Adapters) -> None:
    assert adapters.state.move_cursor(LEDGER, "index", 0, 5, 7)
    assert adapters.state.move_cursor(LEDGER, "archive", 0, 3, 9)
    assert adapters.state.move_cursor(LEDGER, "index", 5, 6)
    assert not adapters.state.move_cursor(LEDGER, "archive", 0, 4, 11), "nothing is changed"
    assert adapters.state.marks(LEDGER) == Marks({"index": 6, "archive": 3}, 1, 9)
