"""The folder in which the client keeps what has to outlive it: configuration, journal and stores."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "MILLRACE_HOME"


def default_home() -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path.home() / ".spec-kitty"
