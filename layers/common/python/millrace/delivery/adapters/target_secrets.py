"""Targets' secrets, sealed with AES-GCM under the deployment's delivery secret and bound to their target."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from millrace.delivery.domain.hub_targets import SecretsLost
from millrace.ledger.domain.keys import KEY_ID_BYTES, key_id
from millrace.ledger.ports import KeyRing

SALT_BYTES, NONCE_BYTES = 16, 12


@dataclass(frozen=True, slots=True)
class SealedSecrets:
    keys: KeyRing

    def seal(self, context: str, text: str) -> bytes:
        secret, salt, nonce = self.keys.current(), os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
        return key_id(secret) + salt + nonce + _cipher(secret, salt).encrypt(nonce, text.encode(), context.encode())

    def open(self, context: str, sealed: bytes) -> str:
        salt = sealed[KEY_ID_BYTES:][:SALT_BYTES]
        nonce, content = sealed[KEY_ID_BYTES + SALT_BYTES :][:NONCE_BYTES], sealed[KEY_ID_BYTES + SALT_BYTES :]
        for secret in self.keys.find(sealed[:KEY_ID_BYTES]):
            try:
                return _cipher(secret, salt).decrypt(nonce, content[NONCE_BYTES:], context.encode()).decode()
            except InvalidTag:
                continue
        raise SecretsLost("The secrets of this target cannot be opened any more: put them again.")


def _cipher(secret: bytes, salt: bytes) -> AESGCM:
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"millrace target").derive(secret))
