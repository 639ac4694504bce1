"""The catalog's protobuf form (C10): from the bytes of a `CatalogEvent` to the event as its JSON would be.

The message is that of `catalog_event.proto`, described here so that no compiler and no generated code is needed; a test
compares the two. This module brings the protobuf library and is imported when the first such body arrives.
"""

from __future__ import annotations

import math
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from millrace.ledger.domain.errors import BadRequest

PACKAGE, NAME = "millrace.catalog.v1", "CatalogEvent"
_Field = descriptor_pb2.FieldDescriptorProto
FIELDS = (
    ("event_type", _Field.TYPE_STRING, None),
    ("event_version", _Field.TYPE_UINT32, None),
    ("idempotency_key", _Field.TYPE_STRING, None),
    ("occurred_at", _Field.TYPE_MESSAGE, timestamp_pb2.Timestamp),
    ("source", _Field.TYPE_STRING, None),
    ("trace_id", _Field.TYPE_STRING, None),
    ("sequence_position", _Field.TYPE_UINT64, None),
    ("payload", _Field.TYPE_MESSAGE, any_pb2.Any),
)
"""In the order of their numbers, from 1."""
OPTIONAL = ("trace_id", "sequence_position")
EXACT = 2**53
"""Up to here a double is every integer."""
MOST_NAMED = 128


def event_of(body: bytes) -> dict[str, Any]:
    """The event that these bytes are. What is left out is not in it; `check_event` says what that breaks."""
    try:
        sent: Any = _CatalogEvent.FromString(body)
    except DecodeError as error:
        rule = "The body is not a CatalogEvent as catalog_event.proto describes it."
        raise BadRequest(rule, field="body") from error
    unknown = UnknownFieldSet(sent)
    if len(unknown):
        number = min(unknown[place].field_number for place in range(len(unknown)))
        raise BadRequest(f"CatalogEvent has no field {number}.", field="body")
    event: dict[str, Any] = {
        "event_type": sent.event_type,
        "event_version": sent.event_version,
        "source": sent.source,
        "payload": _payload(sent.payload) if sent.HasField("payload") else None,
    }
    if sent.idempotency_key:
        event["idempotency_key"] = sent.idempotency_key
    if sent.HasField("occurred_at"):
        event["occurred_at"] = _instant(sent.occurred_at)
    return event | {name: getattr(sent, name) for name in OPTIONAL if sent.HasField(name)}


def _instant(time: timestamp_pb2.Timestamp) -> str:
    """As protobuf writes it in JSON: in UTC with `Z`, and no, 3, 6 or 9 digits after the point."""
    try:
        return time.ToJsonString()
    except ValueError as error:
        rule = "occurred_at must be within the years 1 to 9999, with nanos from 0 to 999999999."
        raise BadRequest(rule, field="occurred_at") from error


def _payload(packed: any_pb2.Any) -> dict[str, Any]:
    content = struct_pb2.Struct()
    if not packed.Is(content.DESCRIPTOR):
        name = packed.TypeName()[:MOST_NAMED] or "nothing"
        rule = f"payload must be an Any of google.protobuf.Struct, not of {name}."
        raise BadRequest(rule, field="payload", value_class=name)
    try:
        content.ParseFromString(packed.value)
    except DecodeError as error:
        rule = "payload is not a google.protobuf.Struct, or nests deeper than protobuf reads (about 30 levels)."
        raise BadRequest(rule, field="payload") from error
    return _object(content)


def _object(content: struct_pb2.Struct) -> dict[str, Any]:
    _refuse_strangers(content)
    return {name: _value(value) for name, value in content.fields.items()}


def _value(value: struct_pb2.Value) -> Any:
    _refuse_strangers(value)
    match value.WhichOneof("kind"):
        case "null_value":
            return None
        case "number_value":
            return _number(value.number_value)
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return _object(value.struct_value)
        case "list_value":
            _refuse_strangers(value.list_value)
            return [_value(member) for member in value.list_value.values]
    raise BadRequest("A value in payload has no kind: null has to be said.", field="payload")


def _number(number: float) -> int | float:
    """A Struct has doubles alone. One that is an integer is that integer, as in JSON."""
    if not math.isfinite(number):
        raise BadRequest("A number in payload is NaN or infinite, which JSON cannot say.", field="payload")
    return int(number) if abs(number) <= EXACT and number.is_integer() else number


def _refuse_strangers(message: Message) -> None:
    if len(UnknownFieldSet(message)):
        raise BadRequest("payload has a field that google.protobuf.Struct does not have.", field="payload")


def _described() -> descriptor_pb2.FileDescriptorProto:
    """What the compiler makes of `catalog_event.proto`."""
    file = descriptor_pb2.FileDescriptorProto(name="catalog_event.proto", package=PACKAGE, syntax="proto3")
    file.dependency.extend(["google/protobuf/any.proto", "google/protobuf/timestamp.proto"])
    message = file.message_type.add(name=NAME)
    for number, (name, kind, of) in enumerate(FIELDS, 1):
        field = message.field.add(name=name, number=number, type=kind, label=_Field.LABEL_OPTIONAL)
        if of is not None:
            field.type_name = f".{of.DESCRIPTOR.full_name}"
        if name in OPTIONAL:
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
    return file


def _compiled() -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    for known in (any_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(_described())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{NAME}"))


_CatalogEvent = _compiled()
