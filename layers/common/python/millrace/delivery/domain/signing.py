"""Standard Webhooks signatures: three headers by which a receiver knows that a body is ours and fresh (D12)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence

from millrace.ledger.domain.errors import BadRequest

PREFIX = "whsec_"
FEWEST_BYTES, MOST_BYTES = 24, 64

_PLAIN_ID = re.compile(r"[A-Za-z0-9_:-]{1,128}")


def headers(message_id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """
    `body` before any compression. Several secrets give several signatures; one that verifies is enough.

    Without a secret there is no signature; the id still tells a repeated request.
    """
    named = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if not secrets:
        return named
    signed = b".".join([message_id.encode("ascii"), str(timestamp).encode("ascii"), body])
    signatures = [hmac.new(key(secret), signed, hashlib.sha256).digest() for secret in secrets]
    return {**named, "webhook-signature": " ".join(f"v1,{base64.b64encode(one).decode()}" for one in signatures)}


def message_id(event_ids: Sequence[str]) -> str:
    """The same events always have the same id. An event id that cannot be a header is hashed."""
    if len(event_ids) == 1 and _PLAIN_ID.fullmatch(event_ids[0]):
        return event_ids[0]
    joined = b"".join(len(raw).to_bytes(4, "big") + raw for raw in (id_.encode() for id_ in event_ids))
    return ("msg_" if len(event_ids) == 1 else "batch_") + hashlib.sha256(joined).hexdigest()[:32]


def key(secret: str) -> bytes:
    """The key in a secret as it is written, `whsec_` and base64. Raises `BadRequest`, which never shows it."""
    try:
        raw = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("A signing secret is whsec_ and base64.", field="secrets") from error
    if not FEWEST_BYTES <= len(raw) <= MOST_BYTES:
        raise BadRequest(f"A signing secret has {FEWEST_BYTES} to {MOST_BYTES} bytes.", field="secrets")
    return raw


def new_secret(random: bytes) -> str:
    return PREFIX + base64.b64encode(random).decode()
