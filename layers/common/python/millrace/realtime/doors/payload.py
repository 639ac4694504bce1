"""What every payload model of a realtime event has: the name of its type, and how it finds what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from millrace.realtime.doors.fields import wording


class Payload(BaseModel):
    """Checks the payload of one type of event, keeps nothing of it.

    Fields the model does not name are allowed: v1.x grows by addition.
    """

    model_config = ConfigDict(strict=True, extra="allow", alias_generator=to_camel, defer_build=True)
    type_name: ClassVar[str]

    def __init_subclass__(cls, *, of: str) -> None:
        cls.type_name = of

    @classmethod
    def problems(cls, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Every (field, message) that is wrong; the field is empty when several are wrong together."""
        try:
            cls.model_validate(payload)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                yield str(one["loc"][0]), wording(one)
