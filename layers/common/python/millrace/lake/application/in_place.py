"""Replaces the object of the same name, if it has not changed since it was read."""

from __future__ import annotations

from millrace.lake.ports.objects import Objects


def put_in_place(objects: Objects, name: str, data: bytes) -> bool:
    """False: somebody else was faster, and theirs stays."""
    before = objects.get(name)
    return objects.put(name, data) if before is None else objects.swap(name, data, before.tag)
