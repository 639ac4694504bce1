"""What the realtime contract's readers answer: replay, checkpoints, transcripts, metrics (R4, R6, R7, R8)."""

from __future__ import annotations

from millrace.domain.access import CONSUMER, OPERATOR
from millrace.runtime import wiring
from millrace.runtime.http import Request, Response
from millrace.runtime.realtime.answers import replayed, to_json
from millrace.runtime.realtime.requests import checkpoint_of, replay_of, session_of
from millrace.runtime.requests import flag_of


def events(request: Request) -> Response:
    session_id = request.path("sessionId")
    session = session_of(request.identity(), session_id)
    request.only_query("afterSequence", "consumerId", "afterTs", "afterEventId", "limit")
    return Response(replayed(session_id, wiring.replay()(session, replay_of(request.query))))


def checkpoint(request: Request) -> Response:
    session = session_of(request.identity(), request.path("sessionId"))
    consumer, place = checkpoint_of(request.json())
    return Response(to_json({"ok": True, "applied": wiring.realtime_state().move(session, consumer, place)}))


def transcript(request: Request) -> Response:
    session_id = request.path("sessionId")
    identity = request.identity()
    session = session_of(identity, session_id)
    request.only_query("rebuild")
    rebuild = flag_of("rebuild", request.query("rebuild"))
    if rebuild:
        identity.require(OPERATOR)
    lines, through = wiring.transcripts()(session, rebuild=rebuild)
    return Response(to_json({"ok": True, "sessionId": session_id, "sequence": through, "utterances": lines}))


def metrics(request: Request) -> Response:
    identity = request.identity()
    identity.require(CONSUMER)
    return Response(to_json({"ok": True, **wiring.realtime_metrics()(identity.tenant)}))
