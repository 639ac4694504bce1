"""Trace context as the W3C has it: whose call an event came in, for whoever follows a request across systems.

It is kept beside the event and passed on as it came. It is never part of the content: a repeated request belongs to
another call, and is still the same event.
"""

from __future__ import annotations

import re
from typing import Any

HEADER = "traceparent"
_FORM = re.compile(r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})")


def traceparent(sent: Any) -> str:
    """What a caller sent, if it is one; else nothing: a broken one is no reason to refuse an event. Of a version that
    is not known yet, the part that version 00 has, as the recommendation says."""
    if not isinstance(sent, str):
        return ""
    found = _FORM.match(sent)
    if found is None or found["version"] == "ff" or not found["trace"].strip("0") or not found["parent"].strip("0"):
        return ""
    rest = sent[found.end() :]
    if found["version"] == "00":
        return "" if rest else sent
    return "" if rest and not rest.startswith("-") else f"00{found[0][2:]}"
