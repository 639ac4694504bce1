"""Keys: how a sealed text names the secret it was sealed with, so that a rotation leaves older ones readable."""

from __future__ import annotations

import hashlib

KEY_ID_BYTES = 4

Key = bytes


def key_id(key: Key) -> bytes:
    return hashlib.sha256(b"key id " + key).digest()[:KEY_ID_BYTES]
