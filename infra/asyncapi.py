"""Makes the one schema of docs/asyncapi.yaml that HTTP has too: `make generated`. The rest of it is written by hand.

A page of a sync is the same object over HTTP and over the WebSocket: its schema is made from the HTTP API's model.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from infra import limits
from infra.openapi.models import SyncAnswer

BEGIN, END = "# made from infra/openapi/models.py: make generated", "# end of what is made"
HERE: Mapping[str, Any] = {
    "partitions": {"oneOf": [{"$ref": "#/components/schemas/partitions"}, {"type": "null"}]},
    "events": {"type": "array", "items": {"$ref": "#/components/schemas/committed_event"}},
}
"""Members whose parts the document describes by hand."""
NO_MATTER = ("title", "default")
_PART = re.compile(f"(?<= {{4}}{re.escape(BEGIN)}\n).*?(?= {{4}}{re.escape(END)}\n)", re.DOTALL)


def sync_answer() -> dict[str, Any]:
    """Open, as every message is: unknown members are ignored. An optional member is left out, never null."""
    model = SyncAnswer.model_json_schema(ref_template="{model}")
    required, rules = model["required"], model["properties"]
    members = {name: _member(name, rule, name in required) for name, rule in rules.items()}
    return {"type": "object", "required": required, "properties": members}


def _member(name: str, rule: dict[str, Any], required: bool) -> dict[str, Any]:
    kept = {key: value for key, value in rule.items() if key not in NO_MATTER}
    if name in HERE:
        return {**HERE[name], **{key: value for key, value in kept.items() if key == "description"}}
    if required or "anyOf" not in kept:
        return kept
    (value,) = (one for one in kept.pop("anyOf") if one != {"type": "null"})
    return {**value, **kept}


def document() -> str:
    made = yaml.safe_dump({"sync_answer": sync_answer()}, sort_keys=False, allow_unicode=True, width=110)
    text, found = _PART.subn(lambda _: textwrap.indent(made, " " * 4), limits.ASYNCAPI.read_text())
    if found != 1:
        raise ValueError(f"{limits.ASYNCAPI} needs one part between '{BEGIN}' and '{END}'.")
    return limits.current(text)


def files() -> dict[Path, str]:
    return {limits.ASYNCAPI: document()}
