"""The kinds of payload fields: how each is checked, what its error says, and its JSON Schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError

from millrace.ledger.domain.instants import DATE_TIME, moment
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.naming import NOT_BLANK, is_blank

_SAID: Mapping[str, str] = {
    "missing": "is required",
    "string_type": "must be a string, not {kind}",
    "string_unicode": "must be valid Unicode text",
    "int_type": "must be an integer, not {kind}",
    "bool_type": "must be true or false, not {kind}",
    "greater_than_equal": "must be 0 or more",
    "literal_error": "must be {expected}",
    "blank": "must not be blank",
    "date_time": "must be an ISO-8601 date-time with Z or an offset, such as 2026-02-16T10:00:00.000Z",
    "number": "must be a number, not {kind}",
    "figure": "must be a number or a string, not {kind}",
}


def wording(error: ErrorDetails) -> str:
    """What is wrong, in our words. Names the class of a value, never the value."""
    wrong, value = error["type"], error["input"]
    kind = "a fraction" if wrong == "int_type" and isinstance(value, float) else kind_of(value)
    return _SAID[wrong].format(kind=kind, expected=error.get("ctx", {}).get("expected"))


def _wrong(kind: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "see wording()")


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise _wrong("blank")
    return text


def _date_time(text: str) -> str:
    try:
        moment(text)
    except ValueError:
        raise _wrong("date_time") from None
    return text


def _whole(value: Any) -> Any:
    """1.0 is the integer 1. A boolean stays one, and the strict check that follows refuses it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _number(value: Any) -> Any:
    """Kept as it is: an integer has no largest value, a double has."""
    if not _is_number(value):
        raise _wrong("number")
    return value


def _figure(value: Any) -> Any:
    if isinstance(value, str):
        return _not_blank(value)
    if not _is_number(value):
        raise _wrong("figure")
    return value


Text = Annotated[str, AfterValidator(_not_blank), Field(json_schema_extra={"pattern": NOT_BLANK})]
"""A string with more than white space in it."""
DateTime = Annotated[
    str, AfterValidator(_date_time), Field(json_schema_extra={"format": "date-time", "pattern": f"^{DATE_TIME}$"})
]
"""`YYYY-MM-DDThh:mm:ss`, at most nine digits of fraction, then `Z` or `±hh:mm`: a moment of the calendar."""
Count = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
"""An integer from 0, without an upper bound."""
Number = Annotated[float, PlainValidator(_number), WithJsonSchema({"type": "number"})]
Figure = Annotated[
    float | str, PlainValidator(_figure), WithJsonSchema({"type": ["number", "string"], "pattern": NOT_BLANK})
]
"""An amount whose unit another field names: a number, or text where a double would round."""
