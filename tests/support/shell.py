"""Shell commands as a person pastes them. Where the machine has no curl, a stand-in does what they ask of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

STAND_IN = '''#!{python}
"""curl -sS [-X method] [-H header]… url [-d body], and no more."""
import argparse, sys
import httpx

parser = argparse.ArgumentParser()
parser.add_argument("-sS", action="store_true")
parser.add_argument("-X")
parser.add_argument("-H", action="append", default=[])
parser.add_argument("-d")
parser.add_argument("url")
asked = parser.parse_args()
headers = dict(header.split(": ", 1) for header in asked.H)
method = asked.X or ("GET" if asked.d is None else "POST")
sys.stdout.write(httpx.request(method, asked.url, headers=headers, content=asked.d).text)
'''


def paste(script: str, folder: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run the lines in one shell, in `folder`."""
    path = os.environ["PATH"]
    if shutil.which("curl") is None:
        stand_in = folder / "bin" / "curl"
        stand_in.parent.mkdir(exist_ok=True)
        stand_in.write_text(STAND_IN.format(python=sys.executable))
        stand_in.chmod(0o755)
        path = f"{stand_in.parent}{os.pathsep}{path}"
    command = ["bash", "-euo", "pipefail", "-c", script]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=timeout
    )
