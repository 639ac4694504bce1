"""Registries: read the registry that compaction uses, or replace it (C5)."""

from __future__ import annotations

from millrace.lake.application.in_place import put_in_place
from millrace.lake.domain.edition import REGISTRY
from millrace.lake.domain.registry import Registry
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import Unavailable


def stored_registry(objects: Objects) -> bytes | None:
    found = objects.get(REGISTRY)
    return None if found is None else found.data


def current_registry(objects: Objects) -> Registry:
    """Without one, nothing of the catalog is known."""
    stored = stored_registry(objects)
    return Registry() if stored is None else Registry.parse(stored)


def put_registry(objects: Objects, data: bytes) -> Registry:
    """`BadRequest` names what a run could not use; then the last one stays."""
    known = Registry.parse(data)
    if not put_in_place(objects, REGISTRY, data):
        raise Unavailable("Somebody else put a registry at the same time: look at it, then put yours again.")
    return known
