"""C10: the catalog's door on a recorded protobuf body, as the gateway hands it on."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import Any

import pytest

from millrace.lake.adapters.catalog_proto import event_of
from millrace.runtime.http import MAX_BODY_BYTES
from tests.unit.runtime.test_handlers import ROOT, answer, aws, sample

__all__ = ["aws"]

RECORDED = sample("catalog_protobuf")
BYTES = base64.b64decode(RECORDED["body"])


def sent(body: bytes = BYTES, headers: dict[str, str] | None = None) -> dict[str, Any]:
    text = base64.b64encode(body).decode()
    return {**RECORDED, "headers": {**RECORDED["headers"], **(headers or {})}, "body": text}


@pytest.mark.parametrize("first", ["catalog", "catalog_protobuf"])
def test_the_protobuf_and_the_json_of_an_event_are_one_event(first: str) -> None:
    """C2, C10: the same key and the same position, whichever comes first."""
    one = answer("catalog", sample(first))
    assert (one["status"], one["sequence_position"], one["deduped"]) == ("committed", 1, False)
    for again in ("catalog", "catalog_protobuf"):
        assert answer("catalog", sample(again)) == {**one, "deduped": True}


@pytest.mark.parametrize("kind", ["application/x-protobuf", "Application/X-Protobuf; proto=x", "application/protobuf"])
def test_the_type_of_the_body_may_be_written_in_other_ways(kind: str) -> None:
    assert answer("catalog", sent(headers={"content-type": kind}))["sequence_position"] == 1


def test_bytes_that_a_gateway_took_for_text_are_taken_if_none_was_lost_and_else_refused() -> None:
    lossless = BYTES.replace(b"\xa0\xd5\xcb\xcc\x06", b"\x01").replace(b'"\x06', b'"\x02')
    assert answer("catalog", {**sent(), "isBase64Encoded": False, "body": lossless.decode()})["sequence_position"] == 1
    body = answer("catalog", {**sent(), "isBase64Encoded": False, "body": BYTES.decode(errors="replace")}, 400)
    assert (body["code"], body["details"]["field"]) == ("bad_request", "body")


@pytest.mark.parametrize(
    ("event", "status", "field"),
    [
        (sent(b"\xff\xff"), 400, "body"),
        (sent(b""), 400, "event_type"),
        ({**sent(), "body": "*"}, 400, "body"),
        (sent(headers={"content-encoding": "gzip"}), 400, "content-encoding"),
        (sent(b"\x0a" * (MAX_BODY_BYTES + 1)), 413, "body"),
        (sent(headers={"content-type": "application/octet-stream"}), 400, "content-type"),
    ],
    ids=["no protobuf", "nothing", "no base64", "compressed", "over the limit", "another type"],
)
def test_what_is_no_event_is_refused_by_its_place(event: dict[str, Any], status: int, field: str) -> None:
    body = answer("catalog", event, status)
    assert body["code"] == {400: "bad_request", 413: "too_large"}[status]
    assert body["details"]["field"] == field


def test_a_type_that_is_not_known_is_refused_by_name() -> None:
    raw = BYTES.replace(b"google.protobuf.Struct", b"google.protobuf.Strukt")
    body = answer("catalog", sent(raw), 400)
    assert "google.protobuf.Strukt" in body["message"]
    assert body["details"]["field"] == "payload"


def test_who_sends_json_does_not_wait_for_the_protobuf_library() -> None:
    """Loading it costs time in a cold start; only a protobuf body needs it."""
    code = (
        "import sys; sys.path.insert(0, 'functions/catalog'); import app; import millrace.lake.doors.catalog\n"
        "assert not [name for name in sys.modules if name.startswith('google.protobuf')]\n"
        "import millrace.lake.adapters.catalog_proto\n"
        "assert 'google.protobuf' in sys.modules"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_layer_brings_the_protobuf_library_and_nobody_but_the_door_reads_it() -> None:
    assert "\nprotobuf==" in (ROOT / "layers/common/requirements.txt").read_text()
    package = ROOT / "layers/common/python/millrace"
    sources = {str(path.relative_to(package)): path.read_text() for path in package.rglob("*.py")}
    importing = {name for name, text in sources.items() if "google.protobuf" in text and " import" in text}
    assert importing == {"lake/adapters/catalog_proto.py"}


def test_the_recorded_body_is_the_recorded_json() -> None:
    assert event_of(BYTES) == json.loads(sample("catalog")["body"])
