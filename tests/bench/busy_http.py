"""A busy ledger over HTTP, on a whole hub: writers of single events, all in one project, or each in one of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from tests.bench.events import items
from tests.bench.hub import PATIENCE, Hub, own_hub
from tests.bench.report import Figure, Section, Table, at_most, exactly

WRITERS = (1, 8, 32)
SECONDS = 12.0
WARM_SECONDS = 4.0
START_SECONDS = 40.0
"""As many functions as writers have to start first, each of which takes about a second of a core."""


@dataclass(frozen=True, slots=True)
class Answer:
    began: float
    took_ms: float
    status: int
    id: str
    position: int | None


def run() -> Section:
    with own_hub() as hub:
        _measure(hub, WRITERS[-1], spread=True, called="warm", seconds=START_SECONDS)
        one = {writers: _measure(hub, writers, spread=False) for writers in WRITERS}
        spread = _measure(hub, WRITERS[-1], spread=True)
    rows = [_row(f"{writers} into one project", answers) for writers, answers in one.items()]
    rows.append(_row(f"{WRITERS[-1]} into {WRITERS[-1]} projects", spread))
    alone, crowd = rows[0], rows[len(WRITERS) - 1]
    ratio = round(crowd["events/s"] / max(0.1, alone["events/s"]), 2)
    answers = one[WRITERS[-1]]
    positions = sorted(answer.position for answer in answers if answer.position is not None)
    dense = len(set(positions)) == len(positions) == (positions[-1] if positions else 0)
    figures = [
        Figure("32 writers over one, events/s", "≥ 1", f"{ratio:g}", ratio >= 1),
        at_most("32 writers: p99 over p50", 10, round(crowd["p99 ms"] / max(1, crowd["p50 ms"]), 1)),
        exactly("32 writers: 5xx answers", "0", str(sum(answer.status >= 500 for answer in answers))),
        exactly("32 writers: positions dense and unique", "True", str(dense)),
    ]
    return Section([Table("busy_http", "single events over HTTP on the embedded stack", rows)], figures)


def _measure(hub: Hub, writers: int, *, spread: bool, called: str = "busy", seconds: float = SECONDS) -> list[Answer]:
    project = f"{called}-{writers}-{'spread' if spread else 'one'}"
    end = time.monotonic() + seconds

    def write(number: int) -> list[Answer]:
        name = f"{project}-{number}" if spread else project
        headers = {"Authorization": f"Bearer {hub.token(name)}"}
        with httpx.Client(base_url=hub.stack.http_url, headers=headers, timeout=PATIENCE) as http:
            answers: list[Answer] = []
            while time.monotonic() < end:
                item = {**items("realistic", 1, number)[0], "id": f"{project}-{number}-{len(answers)}"}
                answers.append(_submit(http, name, item))
            return answers

    with ThreadPoolExecutor(writers) as pool:
        return [answer for answers in pool.map(write, range(writers)) for answer in answers]


def _submit(http: httpx.Client, project: str, item: dict[str, Any]) -> Answer:
    began = time.monotonic()
    response = http.post(f"/v1/projects/{project}/submit_events", json={"events": [item]})
    took = (time.monotonic() - began) * 1000
    position = response.json()["results"][0]["committed_id"] if response.status_code == httpx.codes.OK else None
    return Answer(began, took, response.status_code, item["id"], position)


def _row(name: str, answers: Sequence[Answer]) -> dict[str, Any]:
    """After the first seconds, in which the functions start."""
    first = min(answer.began for answer in answers)
    warm = [answer for answer in answers if answer.began - first >= WARM_SECONDS and answer.position is not None]
    times = sorted(answer.took_ms for answer in warm) or [0.0]
    statuses = Counter(answer.status for answer in answers)
    return {
        "writers": name,
        "events/s": round(len(warm) / (SECONDS - WARM_SECONDS), 1),
        "p50 ms": round(times[len(times) // 2]),
        "p99 ms": round(times[int(len(times) * 0.99)]),
        "refused (429)": statuses[429],
        "5xx": sum(count for status, count in statuses.items() if status >= 500),
    }
