"""Writes every file that is made from code: `make generated`. Tests fail when one of them is stale."""

from __future__ import annotations

from pathlib import Path

from infra import asyncapi, cli_docs, error_docs, limits, metric_docs, realtime_docs, runbook_docs, table_docs
from infra.costs import page as costs
from infra.monitoring import build as monitoring
from infra.openapi import build as openapi


def files() -> dict[Path, str]:
    makers = (
        openapi,
        realtime_docs,
        error_docs,
        metric_docs,
        monitoring,
        limits,
        asyncapi,
        table_docs,
        runbook_docs,
        costs,
        cli_docs,
    )
    return {path: text for maker in makers for path, text in maker.files().items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
