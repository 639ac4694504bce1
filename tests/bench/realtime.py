"""Realtime: CPU of a publish per type, and what publishing, replaying and transcribing a session cost."""

from __future__ import annotations

from tests.bench import realtime_cpu
from tests.bench.report import Figure, Section, Table, at_most, exactly
from tests.bench.rig import Rig, own_rig
from tests.bench.session_costs import PAGE, publish_rows, publishing, replay_rows, transcript_rows
from tests.bench.sync import ROUND_TRIPS

UTTERANCES = 1_000


def run() -> Section:
    cpu = realtime_cpu.rows()
    with own_rig() as rig:
        published, replays = publish_rows(rig), replay_rows(rig)
        told = transcript_rows(rig, UTTERANCES)
        figures = held(rig)
    for read, row in replays:
        if read.pages > 1:
            name = f"replay by sequence, {row['stored']}: round trips of a page after the head"
            figures.append(at_most(name, ROUND_TRIPS, read.rounds_after_head))
    return Section(
        [
            Table("cpu", f"CPU of a publish, µs per event, best of {realtime_cpu.REPETITIONS}", cpu),
            Table("publish", "Publish (Claims, Log and State), by a warm process", published),
            Table("replay", f"Replay of one session in pages of {PAGE} events", [row for _, row in replays]),
            Table("transcript", f"Transcript of {UTTERANCES:,} utterances, each of three events", told),
        ],
        figures,
    )


def held(rig: Rig) -> list[Figure]:
    one, many = publishing(rig, 1), publishing(rig, 25)
    return [
        exactly("one realtime event alone", "2 units, 2 calls", f"{one.units} units, {one.calls} calls"),
        exactly("25 realtime events of one session: calls", "2", f"{many.calls}"),
    ]
