"""The units behind docs/costs.md that the benchmarks do not count, counted by running the functions."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.client import BaseClient

from infra.costs.held import ARCHIVE_OBJECT, FAN_OUT_RINGS, IDLE_RUNS, LOG_BYTES, NOTE, Units
from millrace.ledger import wiring as core
from millrace.ledger.domain.recency import WINDOW_MS
from tests.unit.runtime.test_handlers import deployment, invoke, sample, written

__all__ = ["written"]

CLOUDWATCH_ADDS = 26
READS = ("Query", "GetItem")
"""One unit each: what they find is small, or nothing, and they are strongly consistent."""
WRITES = ("PutItem", "UpdateItem", "DeleteItem")


@dataclass(slots=True)
class Calls:
    """Every call of AWS, as the operation and the table, bucket or queue it concerns."""

    made: list[tuple[str, str]] = field(default_factory=list)

    def units(self, table: str = "") -> Units:
        names = [name for name, of in self.made if not table or of == table]
        known = {*READS, *WRITES, "PutObject", "SendMessageBatch", "GetSecretValue"}
        assert set(names) <= known, "a call whose units nobody has thought of"
        return Units(
            reads=sum(name in READS for name in names),
            writes=sum(name in WRITES for name in names),
            puts=names.count("PutObject"),
            sends=names.count("SendMessageBatch"),
        )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    with deployment(monkeypatch):
        counted, call = Calls(), BaseClient._make_api_call  # type: ignore[attr-defined]

        def counting(client: Any, operation: str, params: Any) -> Any:
            counted.made.append((operation, str(params.get("TableName", ""))))
            return call(client, operation, params)

        monkeypatch.setattr(BaseClient, "_make_api_call", counting)
        yield counted


@pytest.mark.parametrize("name", sorted(IDLE_RUNS))
def test_a_scheduled_run_of_an_idle_hub_takes_the_units_that_the_costs_are_computed_with(
    name: str, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a window's beginning, when sweeps look into the one before too. A place that has moved is one write more."""
    now_ms = WINDOW_MS * 2_000_000
    monkeypatch.setattr(core, "now_ms", lambda: now_ms)
    invoke(name, sample("sweep"))
    calls.made.clear()
    invoke(name, sample("sweep"))
    assert calls.units() == IDLE_RUNS[name]


def test_a_run_of_the_fan_out_looks_for_targets_and_rings_once(calls: Calls) -> None:
    invoke("submit", sample("submit"))
    calls.made.clear()
    invoke("fan_out", sample("stream"))
    of_targets = calls.units(os.environ["DELIVERY_TABLE"])
    assert Units(reads=of_targets.reads, writes=of_targets.writes, sends=calls.units().sends) == FAN_OUT_RINGS


def test_it_rings_for_the_index_once_in_a_window_and_writes_no_line_when_all_goes_well(
    calls: Calls, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_DELAY", "60")
    sent = []
    for number in range(3):
        event = sample("submit")
        event["body"] = event["body"].replace("order-17-paid", f"order-{number}")
        invoke("submit", event)
        calls.made.clear()
        written.truncate(written.seek(0))
        invoke("fan_out", sample("stream"))
        sent.append(calls.units().sends)
        assert written.getvalue() == ""
    assert sent == [FAN_OUT_RINGS.sends, 0, 0]


def test_an_object_of_the_archive_takes_the_units_that_the_costs_are_computed_with(calls: Calls) -> None:
    """The fan-out has noted that the ledger has grown."""
    invoke("submit", sample("submit"))
    invoke("fan_out", sample("stream"))
    calls.made.clear()
    invoke("archive", sample("stream"))
    assert calls.units() == ARCHIVE_OBJECT


def test_that_a_ledger_has_grown_is_noted_once_in_a_window_by_whoever_is_first(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = WINDOW_MS * 2_000_000
    monkeypatch.setattr(core, "now_ms", lambda: now_ms)
    noted: list[float] = []
    for consumer in ("fan_out", "archive", "fan_out", "archive"):
        event = sample("submit")
        event["body"] = event["body"].replace("order-17-paid", f"order-{len(noted)}")
        invoke("submit", event)
        calls.made.clear()
        invoke(consumer, sample("stream"))
        noted.append(calls.units(os.environ["WAITING_TABLE"]).writes)
    assert noted == [NOTE.writes, 0, 0, 0]
    now_ms += WINDOW_MS
    calls.made.clear()
    invoke("submit", sample("submit"))
    assert calls.units(os.environ["WAITING_TABLE"]) == Units(), "nothing is noted by who commits"
    invoke("archive", sample("stream"))
    assert calls.units(os.environ["WAITING_TABLE"]).writes == 1


def test_the_lines_of_a_submit_are_no_longer_than_the_costs_are_computed_with(
    calls: Calls, written: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calls.made == []
    invoke("submit", sample("submit"))
    (line,) = written.getvalue().splitlines()
    (metrics,) = capsys.readouterr().out.splitlines()
    measured = {"function": len(line) + CLOUDWATCH_ADDS, "metrics": len(metrics) + CLOUDWATCH_ADDS}
    assert {name: size for name, size in measured.items() if size > LOG_BYTES[name]} == {}
    assert {name: size for name, size in measured.items() if size < 0.7 * LOG_BYTES[name]} == {}
