"""C10: the envelope's protobuf form, with field numbers that may never change, compiled by the real compiler."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import grpc_tools
import pytest
from google.protobuf import any_pb2, descriptor_pb2, json_format, struct_pb2
from grpc_tools import protoc

from millrace.lake.adapters import catalog_proto

PROTO = Path(__file__).parents[3] / "layers/common/catalog_event.proto"
NUMBERS = {
    "event_type": 1,
    "event_version": 2,
    "idempotency_key": 3,
    "occurred_at": 4,
    "source": 5,
    "trace_id": 6,
    "sequence_position": 7,
    "payload": 8,
}


@pytest.fixture(scope="module")
def catalog_event(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compiled at test time: no generated code to keep in step."""
    out = tmp_path_factory.mktemp("proto")
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    built = protoc.main(["protoc", f"-I{PROTO.parent}", f"-I{well_known}", f"--python_out={out}", PROTO.name])
    assert built == 0
    spec = importlib.util.spec_from_file_location("catalog_event_pb2", out / "catalog_event_pb2.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.CatalogEvent


def test_the_door_reads_the_message_that_the_compiler_makes_of_the_file(catalog_event: Any) -> None:
    compiled = descriptor_pb2.FileDescriptorProto.FromString(catalog_event.DESCRIPTOR.file.serialized_pb)
    for field in compiled.message_type[0].field:
        field.ClearField("json_name")
    assert catalog_proto._described() == compiled


def test_field_numbers_are_those_of_the_contract(catalog_event: Any) -> None:
    assert {field.name: field.number for field in catalog_event.DESCRIPTOR.fields} == NUMBERS


@pytest.mark.parametrize("optional", [{}, {"trace_id": "t1", "sequence_position": 2**53 - 1}])
def test_an_envelope_survives_the_wire(catalog_event: Any, optional: dict[str, Any]) -> None:
    payload = {"rows": 7, "nested": {"list": [1, "x", None, True]}}
    body = any_pb2.Any()
    body.Pack(json_format.ParseDict(payload, struct_pb2.Struct()))
    event = catalog_event(
        event_type="materialization.completed", event_version=3, idempotency_key="k1", source="tests", **optional
    )
    event.occurred_at.FromJsonString("2026-01-31T09:30:00.000000001Z")
    event.payload.CopyFrom(body)
    read = catalog_event.FromString(event.SerializeToString())
    assert read == event
    assert read.occurred_at.ToJsonString() == "2026-01-31T09:30:00.000000001Z"
    assert {name for name in ("trace_id", "sequence_position") if read.HasField(name)} == set(optional)
    inner = struct_pb2.Struct()
    assert read.payload.Unpack(inner)
    assert json.loads(json_format.MessageToJson(inner)) == payload
