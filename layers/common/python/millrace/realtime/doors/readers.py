"""What the realtime contract's readers answer: replay, checkpoints, transcripts, metrics (R4, R6, R7, R8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.ledger.domain.access import CONSUMER, OPERATOR
from millrace.realtime.doors.answers import replayed, to_json
from millrace.realtime.doors.requests import checkpoint_of, replay_of, session_of
from millrace.runtime.http import Request, Response
from millrace.runtime.requests import flag_of

if TYPE_CHECKING:
    from millrace.realtime.application.count_events import RealtimeMetrics
    from millrace.realtime.application.replay import Replay
    from millrace.realtime.application.transcripts import Transcripts
    from millrace.realtime.ports import Checkpoints


def events(replay: Replay, request: Request) -> Response:
    session_id = request.path("sessionId")
    session = session_of(request.identity(), session_id)
    request.only_query("afterSequence", "consumerId", "afterTs", "afterEventId", "limit")
    return Response(replayed(session_id, replay(session, replay_of(request.query))))


def checkpoint(checkpoints: Checkpoints, request: Request) -> Response:
    session = session_of(request.identity(), request.path("sessionId"))
    consumer, place = checkpoint_of(request.json())
    return Response(to_json({"ok": True, "applied": checkpoints.move(session, consumer, place)}))


def transcript(transcripts: Transcripts, request: Request) -> Response:
    session_id = request.path("sessionId")
    identity = request.identity()
    session = session_of(identity, session_id)
    request.only_query("rebuild")
    rebuild = flag_of("rebuild", request.query("rebuild"))
    if rebuild:
        identity.require(OPERATOR)
    lines, through = transcripts(session, rebuild=rebuild)
    return Response(to_json({"ok": True, "sessionId": session_id, "sequence": through, "utterances": lines}))


def metrics(count: RealtimeMetrics, request: Request) -> Response:
    identity = request.identity()
    identity.require(CONSUMER)
    return Response(to_json({"ok": True, **count(identity.tenant)}))
