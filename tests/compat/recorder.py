"""Records the rows and pages that this release writes: `python -m tests.compat.recorder`, once before each release.

The file stays: the readers of every later release are tested on it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moto import mock_aws

from millrace.version import VERSION
from tests.compat import stories
from tests.support.aws_tables import NAMES, AwsTables, create_tables, new_client

FOLDER = Path(__file__).parent
Rows = Mapping[str, list[dict[str, Any]]]


def rows_of(tables: AwsTables) -> Rows:
    """Every item of every table, in the order of their keys."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in NAMES:
        items: list[dict[str, Any]] = []
        for page in tables.client.get_paginator("scan").paginate(TableName=getattr(tables, name.lower())):
            items += page["Items"]
        found[name] = sorted(items, key=repr)
    return found


def written() -> Rows:
    """What today's writers store."""
    with mock_aws():
        tables = create_tables(new_client(None))
        stories.write(tables)
        return rows_of(tables)


def to_json(rows: Rows) -> str:
    return json.dumps(rows, indent=1, sort_keys=True, default=lambda value: base64.b64encode(value).decode()) + "\n"


def from_json(text: str) -> Rows:
    return {name: [_item(item) for item in items] for name, items in json.loads(text).items()}


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {kind: _value(kind, held) for kind, held in value.items()} for name, value in item.items()}


def _value(kind: str, held: Any) -> Any:
    if kind == "M":
        return _item(held)
    return base64.b64decode(held) if kind == "B" else held


def main() -> None:
    path = FOLDER / f"{VERSION}.json"
    path.write_text(to_json(written()))
    print(path)


if __name__ == "__main__":
    main()
