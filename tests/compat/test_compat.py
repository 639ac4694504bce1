"""Readers before writers: today's readers read what older releases stored, and what a newer one adds to it; and older
readers find in today's rows what they look for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from millrace.lake.domain.retention_rules import Rule
from millrace.ledger.domain.page import Page
from millrace.version import VERSION
from tests.compat import rooms, stories
from tests.compat.recorder import FOLDER, Rows, from_json, rows_of, written
from tests.support.aws_tables import AwsTables, create_tables, new_client, resources

RECORDED = sorted(FOLDER.glob("*.json"))
FORMATS = {b"\x01", b"\x02"}
"""Of pages, which every recorded release reads. The release that reads a new one adds it; the next one writes it."""
DELIVERY = '["transient",'
"""How a list begins whose readers take the elements they know."""
KIND = re.compile(r'(?:join_key\(|return f)"([a-z]+)(?:"|#\{)')
PACKAGE = Path(__file__).parents[2] / "layers/common/python/millrace"
NOT_RECORDED = {"streams", "w"}
"""The beginning of names that are looked for, and rows of listeners to a whole ledger: the form of those to a part."""
LATER = {"future": {"S": "what a newer release adds"}}


@pytest.fixture
def tables() -> Iterator[AwsTables]:
    with mock_aws():
        yield create_tables(new_client(None))


def put(tables: AwsTables, rows: Rows) -> None:
    for name, items in rows.items():
        for item in items:
            tables.client.put_item(TableName=getattr(tables, name.lower()), Item=item)


def extended(item: dict[str, Any]) -> dict[str, Any]:
    """The item as a newer release may write it: with an attribute more, and a field more in each object it holds."""
    return {**{name: _extended(value) for name, value in item.items()}, **LATER}


def _extended(value: dict[str, Any]) -> dict[str, Any]:
    text = value.get("S", "")
    if text.startswith(DELIVERY):
        return {"S": json.dumps([*json.loads(text), "what a newer release adds"])}
    if not text.startswith("{"):
        return value
    return {"S": json.dumps(_more(json.loads(text)))}


def _more(held: Any) -> Any:
    if isinstance(held, dict):
        return {**{name: _more(value) for name, value in held.items()}, "future": {"a": 1}}
    return held


def expected(tables: AwsTables) -> dict[str, Any]:
    stories.write(tables)
    return stories.read(tables)


def test_this_release_is_recorded() -> None:
    assert FOLDER / f"{VERSION}.json" in RECORDED, "run: python -m tests.compat.recorder"


def test_what_is_written_is_what_is_read(tables: AwsTables) -> None:
    read = expected(tables)
    assert read["pages"] == stories.PAGES
    assert all(isinstance(page, Page) for page in read["pages"])
    assert (read["index"], read["connection"]) == (stories.ROWS, stories.CONNECTION)
    assert (read["target"], read["lane"].reservation) == ((stories.TARGET, stories.CIRCUIT), stories.RESERVATION)
    assert read["subscriptions"] == [stories.SUBSCRIPTION]
    assert (read["negotiated"], read["grants"]) == (stories.NEGOTIATED, [stories.GRANT])
    of_rooms = read["rooms"]
    assert (of_rooms["waiting"], of_rooms["board"]) == ([rooms.WAITING], (b"leader", rooms.NOW_MS + 150))
    assert (of_rooms["shards"], of_rooms["places"], of_rooms["profile"]) == ({1: rooms.PROGRESS}, 1, "canonical")
    assert of_rooms["rules"] == {"orders": Rule(5, 30, 1_000)}
    assert (of_rooms["runs"], of_rooms["lowest open"]) == ([rooms.RUN], 3)
    assert (of_rooms["drains"], of_rooms["line"]) == ([rooms.DRAIN], [rooms.IN_LINE])
    assert (of_rooms["counters"], of_rooms["checkpoint"]) == ({"invalid": 2, "deduped": 3}, rooms.CHECKPOINT)
    assert (of_rooms["times"], of_rooms["marker"]) == ((rooms.NOTE, [rooms.TIMES]), (rooms.MARKER, "x"))
    assert (of_rooms["intents"], of_rooms["rate"]) == ([rooms.INTENT], 511)


def test_every_kind_of_row_is_recorded() -> None:
    """By the first part of its partition's key, as the adapters write it."""
    adapters = [path.read_text() for path in PACKAGE.glob("*/adapters/**/*.py") if "memory" not in path.name]
    kinds = {kind for text in adapters for kind in KIND.findall(text)}
    stored = [item for rows in written().values() for item in rows]
    keys = [item[key].get("S", "") for item in stored for key in ("p", "l") if key in item]
    assert kinds - {key.split("#")[0] for key in keys} == NOT_RECORDED


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_todays_readers_read_what_a_release_stored(path: Path, tables: AwsTables) -> None:
    put(tables, from_json(path.read_text()))
    found = stories.read(tables)
    with mock_aws():
        assert found == expected(create_tables(new_client(None)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_readers_ignore_what_a_newer_release_adds(path: Path, tables: AwsTables) -> None:
    """As an old reader meets a new writer's rows while functions are replaced, or after a rollback."""
    put(tables, {name: [extended(item) for item in items] for name, items in from_json(path.read_text()).items()})
    newer_row = {"p": {"S": f"ledger#{stories.LEDGER.name}"}, "s": {"S": "unheard-of"}, "v": {"S": "of"}}
    tables.client.put_item(TableName=tables.state, Item=newer_row)
    found = stories.read(tables)
    with mock_aws():
        assert found == expected(create_tables(new_client(None)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_releases_readers_find_in_todays_rows_what_they_look_for(path: Path) -> None:
    """Each attribute that it wrote is still there, of the same type, and pages are in a format that it reads."""
    today = {_place(name, item): item for name, items in written().items() for item in items}
    for name, items in from_json(path.read_text()).items():
        for item in items:
            now = today[_place(name, item)]
            assert {attribute: value.keys() for attribute, value in item.items()}.items() <= {
                attribute: value.keys() for attribute, value in now.items()
            }.items()
            for attribute, value in item.items():
                _finds(value, now[attribute])
    assert {item["e"]["B"][:1] for item in written()["Log"]} <= FORMATS


def _finds(then: dict[str, Any], now: dict[str, Any]) -> None:
    text = then.get("S", "")
    if text.startswith("{"):
        assert json.loads(text).keys() <= json.loads(now["S"]).keys()


def _place(table: str, item: dict[str, Any]) -> tuple[str, str]:
    schema = resources()[f"{table}Table"]["Properties"]["KeySchema"]
    return table, repr([item[key["AttributeName"]] for key in schema])


def test_recording_twice_gives_the_same_rows(tables: AwsTables) -> None:
    """But for connections, whose rows have names of chance."""
    stories.write(tables)
    once, again = ({**rows, "Connections": []} for rows in (rows_of(tables), written()))
    assert once == again
