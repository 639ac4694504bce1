"""One name, one thing: a class name occurs once, unless it is listed here with the reason why it may occur again."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("layers/common/python", "clients", "functions", "glue_jobs", "infra", "local")

ERROR_OF_THE_CONTRACT = "an error of the streams contract: the hub answers with it, and its client raises it"
ANSWER_OF_THE_CONTRACT = (
    "an answer of the streams contract: the hub makes it, its client reads it, OpenAPI describes it"
)
DESCRIBED = "a value of the hub, and the model that describes it in OpenAPI"
PUBLIC = "a public name of the client, and a word that the hub uses for something else; no module needs both"
OF_TWO_ROOMS = "a common word that two rooms of the hub use, each for its own; no module needs both"

MAY_OCCUR_AGAIN = {
    "BreakGlassGrant": DESCRIBED,
    "SyncRequest": DESCRIBED,
    "Emitted": ANSWER_OF_THE_CONTRACT,
    "Negotiated": ANSWER_OF_THE_CONTRACT,
    "Conflict": f"{ERROR_OF_THE_CONTRACT}; in the core it is the error with the same meaning for all other contracts",
    "CursorExpired": ERROR_OF_THE_CONTRACT,
    "RateLimited": "the error of the streams contract, and the client's error with the same meaning for sync",
    "SdkError": ERROR_OF_THE_CONTRACT,
    "StreamDegraded": ERROR_OF_THE_CONTRACT,
    "Batch": PUBLIC,
    "NoAnswer": PUBLIC,
    "Position": PUBLIC,
    "Refused": PUBLIC,
    "Rejected": PUBLIC,
    "Status": PUBLIC,
    "Outcome": OF_TWO_ROOMS,
    "Request": OF_TWO_ROOMS,
    "Response": OF_TWO_ROOMS,
}


def modules() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "build" not in path.parts)


def homes(paths: Iterator[Path]) -> dict[str, list[str]]:
    """Where each class is defined."""
    found = defaultdict(list)
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path}:{node.lineno}")
    return found


@cache
def of_the_product() -> dict[str, list[str]]:
    return homes(modules())


def repeated(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_class_name_occurs_once_or_is_listed_with_a_reason() -> None:
    unlisted = {name: places for name, places in repeated(of_the_product()).items() if name not in MAY_OCCUR_AGAIN}
    assert not unlisted, "Give each of these a name that says what it is."


def test_what_is_listed_still_occurs_twice() -> None:
    assert not set(MAY_OCCUR_AGAIN) - set(repeated(of_the_product()))


def test_a_second_class_of_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Thing: ...\nclass Other: ...\n")
    (tmp_path / "two.py").write_text("def make():\n    class Thing: ...\n    return Thing\n")
    assert set(repeated(homes(tmp_path.glob("*.py")))) == {"Thing"}
