"""Consumers: those who read every ledger from a cursor of their own. Sweeps watch them and retention waits for them."""

from __future__ import annotations

INDEX_CONSUMER = "index"
FAN_OUT_CONSUMER = "fan_out"
ARCHIVE_CONSUMER = "archive"
