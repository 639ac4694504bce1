"""`traceparent`: taken from a caller, kept beside its events, never part of their content."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.packing import pack_parts, traces_of, unpack_parts, with_traces
from millrace.ledger.domain.page import Origin, Page, Part, Record
from millrace.ledger.domain.tracing import traceparent

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_what_a_caller_sends_is_kept_as_it_is() -> None:
    assert traceparent(GIVEN) == GIVEN


@pytest.mark.parametrize(
    "sent",
    [
        "",
        None,
        7,
        GIVEN.upper(),
        f" {GIVEN}",
        f"{GIVEN}\r\nx: y",
        f"{GIVEN}-more",
        GIVEN[:-1],
        f"ff{GIVEN[2:]}",
        f"01{GIVEN[2:]}x",
        GIVEN.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        GIVEN.replace("00f067aa0ba902b7", "0" * 16),
        f"{GIVEN},{GIVEN}",
    ],
)
def test_what_is_none_is_passed_over(sent: object) -> None:
    assert traceparent(sent) == ""


def test_of_a_later_version_the_known_part_is_kept() -> None:
    assert traceparent(f"01{GIVEN[2:]}") == GIVEN
    assert traceparent(f"cc{GIVEN[2:]}-what-comes") == GIVEN


def page(*origins: Origin) -> Page:
    records = tuple(Record(f"e{number}", digest(b"%d" % number), b"{}") for number in range(len(origins)))
    parts = tuple(Part(1, origin, b"n%d" % number) for number, origin in enumerate(origins))
    return Page(1, records, 5, origins[0], b"n", parts=parts)


def test_each_request_of_a_page_keeps_its_own() -> None:
    shared = page(Origin("a", trace=GIVEN), Origin("b", "socket"), Origin("a", trace=OTHER), Origin("a"))
    stored = replace(shared, origin=Origin("a"), parts=unpack_parts(pack_parts(shared.parts)))
    assert all(part.origin.trace == "" for part in stored.parts), "the layout of parts is the one that is read so far"
    assert with_traces(stored, traces_of(shared)) == shared
    assert [event.origin.trace for event in shared.events()] == [GIVEN, "", OTHER, ""]


def test_pages_without_any_say_nothing_of_it() -> None:
    assert traces_of(page(Origin("a"), Origin("b"))) == ""
    assert traces_of(replace(page(Origin("a")), parts=())) == ""


def test_what_does_not_fit_a_page_is_passed_over() -> None:
    two = page(Origin("a"), Origin("b"))
    assert with_traces(two, GIVEN) == two


def test_calls_do_not_make_the_table_of_origins_longer() -> None:
    calls = [f"00-{number:032x}-00f067aa0ba902b7-01" for number in range(1, 50)]
    assert len(pack_parts(page(*(Origin("client", trace=call) for call in calls)).parts)) == len(
        pack_parts(page(*(Origin("client") for _ in calls)).parts)
    )


def test_a_part_weighs_what_its_call_takes() -> None:
    traced, plain = Part(1, Origin("c", trace=GIVEN), b"n"), Part(1, Origin("c"), b"n")
    assert traced.weight - plain.weight == len(GIVEN)
