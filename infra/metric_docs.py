"""The page of metrics, docs/metrics.md: every name the hub counts under, from the list that the code counts by."""

from __future__ import annotations

from pathlib import Path

from millrace.ledger.domain.metrics import MEANINGS

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

HEAD = """# Metrics

Generated from `layers/common/python/millrace/ledger/domain/metrics.py` by `make generated`; do not edit.

The hub counts in CloudWatch's embedded metric format, in the namespace `Millrace/STACK`. A metric has the dimension
`service` (the function), `contract` (whose events they are) where that is known, and for deliveries `status`
(the state that the attempt left: `success`, `duplicate`, `pending`, `rejected`, `transient`, `terminal_failed`).

| metric | what is counted |
|---|---|
"""


def files() -> dict[Path, str]:
    return {PAGE: HEAD + "".join(f"| `{metric}` | {meaning} |\n" for metric, meaning in MEANINGS.items())}
