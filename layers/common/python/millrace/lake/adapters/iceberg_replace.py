"""A commit of Iceberg that replaces some of a table's files by others."""

from __future__ import annotations

import uuid

from pyiceberg.manifest import ManifestFile
from pyiceberg.table.update.snapshot import _OverwriteFiles


class ReplacedFiles(_OverwriteFiles):
    """As pyiceberg overwrites files, but a list of nothing but removed files is not carried on for ever."""

    def _existing_manifests(self) -> list[ManifestFile]:
        return [one for one in super()._existing_manifests() if one.has_added_files() or one.has_existing_files()]


def timed_uuid(now_ms: int) -> uuid.UUID:
    """Names the files of a commit, and tells when it was begun (as a UUID of version 7 does)."""
    random = uuid.uuid4().int & ((1 << 76) - 1)
    version = (now_ms << 80) | (7 << 76) | random
    return uuid.UUID(int=(version & ~(3 << 62)) | (2 << 62))
