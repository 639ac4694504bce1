"""Who may read a session. Every reader of the realtime contract asks here."""

from __future__ import annotations

from millrace.ledger.domain.access import CONSUMER, Identity, session_partition
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, realtime_ledger
from millrace.ledger.domain.naming import MAX_NAME_BYTES, is_text


def readable_session(identity: Identity, session_id: str) -> Ledger:
    """The session's ledger in the bearer's tenant. Raises `Forbidden`, or `BadRequest` for a name that cannot be."""
    identity.require(CONSUMER)
    if not session_id or not is_text(session_id) or len(session_id.encode()) > MAX_NAME_BYTES:
        raise BadRequest(f"sessionId must be a string of 1 to {MAX_NAME_BYTES} bytes.", field="sessionId")
    identity.require_reach(session_partition(session_id), "this session", field="sessionId")
    return realtime_ledger(identity.tenant, session_id)
