"""Objects in memory, for tests and as the plainest statement of the contract."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from threading import Lock

from millrace.lake.ports.objects import Fetched, ListedObject


class MemoryObjects:
    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self._lock = Lock()

    def list(self, prefix: str, after: str = "") -> Iterator[ListedObject]:
        for name in sorted(self.stored, key=str.encode):
            if name.startswith(prefix) and name.encode() > after.encode():
                yield ListedObject(name, len(self.stored[name]))

    def get(self, name: str) -> Fetched | None:
        data = self.stored.get(name)
        return None if data is None else Fetched(data, tag_of(data))

    def put(self, name: str, data: bytes) -> bool:
        with self._lock:
            if name in self.stored:
                return False
            self.stored[name] = data
            return True

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        with self._lock:
            found = self.get(name)
            if found is None or found.tag != tag:
                return False
            self.stored[name] = data
            return True

    def delete(self, name: str) -> None:
        self.stored.pop(name, None)


def tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
