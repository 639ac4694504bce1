"""What the realtime contract's readers answer: replay, checkpoints, transcripts, metrics (R4, R6, R7, R8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.realtime.doors.answers import replayed, transcribed
from millrace.realtime.doors.requests import checkpoint_of, replay_of, transcript_place_of
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import flag_of

if TYPE_CHECKING:
    from millrace.realtime.application.checkpoint import Checkpoint
    from millrace.realtime.application.count_events import RealtimeMetrics
    from millrace.realtime.application.replay import Replay
    from millrace.realtime.application.transcripts import Transcripts


def events(replay: Replay, request: Request) -> Response:
    identity, session_id = request.identity(), request.path("sessionId")
    request.only_query("afterSequence", "consumerId", "afterTs", "afterEventId", "limit")
    return Response(replayed(session_id, replay(identity, session_id, replay_of(request.query))))


def checkpoint(move: Checkpoint, request: Request) -> Response:
    identity = request.identity()
    consumer, place = checkpoint_of(request.json())
    applied = move(identity, request.path("sessionId"), consumer, place)
    return Response(to_json({"ok": True, "applied": applied}))


def transcript(transcripts: Transcripts, request: Request) -> Response:
    identity, session_id = request.identity(), request.path("sessionId")
    request.only_query("rebuild", "afterStartMs", "afterUtteranceId")
    rebuild = flag_of("rebuild", request.query("rebuild"))
    told = transcripts(identity, session_id, transcript_place_of(request.query), rebuild=rebuild)
    return Response(transcribed(session_id, told))


def metrics(count: RealtimeMetrics, request: Request) -> Response:
    return Response(to_json({"ok": True, **count(request.identity())}))
