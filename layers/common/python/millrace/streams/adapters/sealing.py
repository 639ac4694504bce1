"""Sealing: encrypt with AES-GCM, by a key made of the deployment's secret and a grant's salt. No salt, no key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millrace.ledger.domain.keys import KEY_ID_BYTES, key_id
from millrace.ledger.ports import KeyRing
from millrace.streams.domain.errors import GrantEnded
from millrace.streams.domain.grant import BreakGlassGrant

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class AesSealer:
    keys: KeyRing

    def seal(self, grant: BreakGlassGrant, content: bytes) -> bytes:
        secret, nonce = self.keys.current(), os.urandom(NONCE_BYTES)
        return key_id(secret) + nonce + _cipher(secret, grant).encrypt(nonce, content, grant.id.encode())

    def open(self, grant: BreakGlassGrant, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - most requests seal and open nothing

        if grant.salt:
            nonce, content = sealed[KEY_ID_BYTES:][:NONCE_BYTES], sealed[KEY_ID_BYTES + NONCE_BYTES :]
            for secret in self.keys.find(sealed[:KEY_ID_BYTES]):
                try:
                    return _cipher(secret, grant).decrypt(nonce, content, grant.id.encode())
                except InvalidTag:
                    continue
        raise GrantEnded("What was kept under this grant cannot be opened any more.", grant_id=grant.id)


def _cipher(secret: bytes, grant: BreakGlassGrant) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    derive = HKDF(algorithm=SHA256(), length=32, salt=bytes.fromhex(grant.salt), info=b"millrace grant")
    return AESGCM(derive.derive(secret))
