"""`make audit`: ask the registry about every pinned version: known vulnerabilities, yanked files, newer versions.

It asks PyPI's JSON API, which has the advisories that pip-audit reads too. It never passes what it could not ask for:
exit codes are 0 (all was asked, nothing is wrong), 1 (something is wrong) and 2 (not everything could be asked).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
FILES = (
    "layers/common/requirements.txt",
    *(f"requirements/{name}.txt" for name in ("runtime", "run", "jobs", "dev", "sam")),
)
REGISTRY = "https://pypi.org"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==(?P<version>[^\s;\\]+)", re.MULTILINE)
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Pin:
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What the registry says about one pinned version."""

    pin: Pin
    vulnerabilities: tuple[str, ...] | None
    """None: it could not be asked."""
    yanked: bool = False
    newest: str | None = None
    """None: it could not be asked."""

    @property
    def is_wrong(self) -> bool:
        return self.yanked or bool(self.vulnerabilities)

    @property
    def is_incomplete(self) -> bool:
        return self.vulnerabilities is None or self.newest is None


def pins(files: Iterable[Path]) -> list[Pin]:
    """Each once, in order of their names."""
    found = {Pin(match["name"].lower(), match["version"]) for file in files for match in PIN.finditer(file.read_text())}
    return sorted(found, key=lambda pin: (pin.name, pin.version))


def ask(registry: httpx.Client, pin: Pin) -> Finding:
    """A version has a page of its own; the project's page has the advisories of its newest version only."""
    project, release = (
        _page(registry, f"/pypi/{pin.name}/json"),
        _page(registry, f"/pypi/{pin.name}/{pin.version}/json"),
    )
    newest = str(project["info"]["version"]) if project else None
    files = release["urls"] if release else (project or {}).get("releases", {}).get(pin.version, [])
    told = release or (project if newest == pin.version else None)
    vulnerabilities = tuple(_advisories(told)) if told is not None else None
    return Finding(pin, vulnerabilities, bool(files) and all(file.get("yanked") for file in files), newest)


def _page(registry: httpx.Client, path: str) -> Any:
    try:
        answer = registry.get(path)
        return answer.json() if answer.is_success else None
    except (httpx.HTTPError, ValueError):
        return None


def _advisories(page: Any) -> Iterable[str]:
    for one in page.get("vulnerabilities") or []:
        if not one.get("withdrawn"):
            fixed = ", ".join(one.get("fixed_in") or []) or "no version"
            yield f"{', '.join([one['id'], *one.get('aliases', [])])}; corrected in {fixed}"


def audit(registry: httpx.Client, wanted: Sequence[Pin]) -> list[Finding]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda pin: ask(registry, pin), wanted))


def report(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        lines += [f"VULNERABLE  {finding.pin}: {text}" for text in finding.vulnerabilities or ()]
        lines += [f"YANKED      {finding.pin}: its author took it back"] if finding.yanked else []
    lines += [
        f"older       {finding.pin}: the newest is {finding.newest}"
        for finding in findings
        if finding.newest not in (None, finding.pin.version)
    ]
    unknown = [str(finding.pin) for finding in findings if finding.vulnerabilities is None]
    if unknown:
        lines.append(
            f"NOT ASKED   the registry has no advisories here for {len(unknown)} versions: {', '.join(unknown)}"
        )
    if all(finding.newest is None for finding in findings):
        lines.append("NOT ASKED   the registry cannot be reached; run this where it can be.")
    return lines


def consistent() -> bool:
    """Whether what is installed fits together; pip says what does not."""
    return subprocess.run([sys.executable, "-m", "pip", "check"], check=False).returncode == 0


def main(argv: list[str] | None = None, transport: httpx.BaseTransport | None = None) -> int:
    parser = argparse.ArgumentParser(prog="infra.audit", description=__doc__)
    parser.add_argument("--registry", default=REGISTRY, help=f"a registry with PyPI's JSON API; default {REGISTRY}")
    options = parser.parse_args(argv)
    fits = consistent()
    with httpx.Client(base_url=options.registry, timeout=30, follow_redirects=True, transport=transport) as registry:
        findings = audit(registry, pins(ROOT / file for file in FILES))
    print("\n".join(report(findings)))
    wrong, incomplete = sum(one.is_wrong for one in findings), sum(one.is_incomplete for one in findings)
    print(f"{len(findings)} versions: {wrong} wrong, {incomplete} not fully asked.")
    if wrong or not fits:
        return 1
    return 2 if incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
