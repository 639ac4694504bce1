"""C1, C3, C10: what the document of the envelope says of its types, its cost, its trace and its only writer."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from millrace.lake.domain.archive import EventWriter, read_lines
from millrace.lake.domain.catalog import check_event, draft
from millrace.ledger.domain.names import catalog_ledger
from millrace.ledger.domain.page import Event, Origin, Record

ROOT = Path(__file__).parents[3]
PROTO = """
    string event_type = 1
    uint32 event_version = 2
    string idempotency_key = 3
    google.protobuf.Timestamp occurred_at = 4
    string source = 5
    optional string trace_id = 6
    optional uint64 sequence_position = 7
    google.protobuf.Any payload = 8
"""
EVENT = {
    "event_type": "materialization.completed",
    "event_version": 1,
    "idempotency_key": "k1",
    "occurred_at": "2026-01-31T09:30:00Z",
    "source": "scheduler",
    "payload": {"rows": 7},
}
WRITERS_CODE = ("layers/common/python/millrace", "clients", "glue_jobs", "functions", "local", "infra")


def archived(event: dict[str, object]) -> dict[str, object]:
    drafted = draft(check_event(event))
    writer = EventWriter()
    record = Record(drafted.id, drafted.digest, drafted.body)
    writer.add(catalog_ledger("acme", "orders").name, Event(5, record, 1_000, Origin("c1")))
    (line,) = read_lines(writer.finish().data)
    assert isinstance(line, dict)
    return line


def test_trace_and_source_of_an_event_are_in_its_line_of_the_archive() -> None:
    """C1: so that it can be followed from a table back to the request and the service it came from."""
    line = archived({**EVENT, "trace_id": "req-7"})
    assert (line["trace_id"], line["source"], line["client_id"]) == ("req-7", "scheduler", "c1")
    assert "trace_id" not in archived(EVENT)


@pytest.mark.parametrize("version", [1, 2**32 - 1])
def test_every_version_that_32_bits_can_tell_is_taken(version: int) -> None:
    """C1, C10"""
    assert check_event({**EVENT, "event_version": version}).event_version == version


def test_the_proto_declares_the_types_of_the_document() -> None:
    """C10"""
    text = (ROOT / "layers/common/catalog_event.proto").read_text()
    message = re.search(r"message CatalogEvent \{(.*?)\n\}", text, re.DOTALL)
    assert message
    declared = [line.strip() for line in re.sub(r"//.*", "", message[1]).split(";") if line.strip()]
    assert declared == [line.strip() for line in PROTO.strip().splitlines()]


def test_an_envelope_costs_about_a_hundred_bytes_beside_its_values() -> None:
    """C1: names of fields and punctuation, as an event is stored."""
    envelope = check_event(EVENT)
    texts = (envelope.event_type, envelope.idempotency_key, envelope.occurred_at, envelope.source)
    values = len(envelope.payload) + sum(map(len, texts)) + len(str(envelope.event_version))
    assert 90 <= len(draft(envelope).body) - values <= 110


def test_nothing_but_the_event_writer_makes_an_object_of_the_archive() -> None:
    """C10: an object's name and bytes come from `EventWriter.finish` and from nowhere else."""
    makers = []
    for folder in WRITERS_CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                called = node.func if isinstance(node, ast.Call) else None
                if isinstance(called, ast.Name) and called.id in ("ArchiveObject", "object_name"):
                    makers.append(f"{path.relative_to(ROOT)}: {called.id}")
    home = "layers/common/python/millrace/lake/domain/archive.py"
    assert sorted(makers) == [f"{home}: ArchiveObject", f"{home}: object_name"]
