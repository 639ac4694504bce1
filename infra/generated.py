"""Writes every file that is made from code: `make generated`. Tests fail when one of them is stale."""

from __future__ import annotations

from pathlib import Path

from infra import error_docs, limits, realtime_docs
from infra.monitoring import build as monitoring
from infra.openapi import build as openapi


def files() -> dict[Path, str]:
    return {**openapi.files(), **realtime_docs.files(), **error_docs.files(), **monitoring.files(), **limits.files()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
