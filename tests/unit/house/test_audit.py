"""The audit of dependencies: it finds what the registry knows, and never passes what it could not ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from infra import audit

CLEAN: dict[str, Any] = {"info": {"version": "2.0"}, "urls": [{"yanked": False}], "vulnerabilities": []}
ADVISORY = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fixed_in": ["3.0"], "withdrawn": None}
PIN = audit.Pin("thing", "2.0")


def asked(pages: dict[str, Any], pin: audit.Pin = PIN) -> audit.Finding:
    def answer(request: httpx.Request) -> httpx.Response:
        page = pages.get(request.url.path)
        return httpx.Response(404) if page is None else httpx.Response(200, json=page)

    with httpx.Client(base_url="https://registry", transport=httpx.MockTransport(answer)) as registry:
        return audit.ask(registry, pin)


def test_every_pin_of_the_compiled_files_is_asked_for_once(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Thing==2.0 \\\n    --hash=sha256:00\n    # via other==9\nboto3[crt]==1.2\n")
    assert audit.pins([file, file]) == [audit.Pin("boto3", "1.2"), PIN]
    assert len(audit.pins(audit.ROOT / name for name in audit.FILES)) > 100


def test_a_version_without_fault_passes() -> None:
    finding = asked({"/pypi/thing/json": CLEAN, "/pypi/thing/2.0/json": CLEAN})
    assert not finding.is_wrong
    assert not finding.is_incomplete
    assert audit.report([finding]) == []


def test_a_known_vulnerability_is_told_unless_it_was_withdrawn() -> None:
    withdrawn = ADVISORY | {"id": "PYSEC-2", "withdrawn": "2026-01-01T00:00:00Z"}
    page = CLEAN | {"vulnerabilities": [ADVISORY, withdrawn]}
    finding = asked({"/pypi/thing/json": CLEAN, "/pypi/thing/2.0/json": page})
    assert finding.is_wrong
    assert audit.report([finding]) == ["VULNERABLE  thing 2.0: PYSEC-1, CVE-1; corrected in 3.0"]


def test_a_yanked_version_is_told_by_either_page() -> None:
    yanked = CLEAN | {"urls": [{"yanked": True}]}
    assert asked({"/pypi/thing/json": CLEAN, "/pypi/thing/2.0/json": yanked}).yanked
    assert asked({"/pypi/thing/json": CLEAN | {"releases": {"2.0": [{"yanked": True}]}}}).yanked


def test_an_older_version_is_no_fault_but_advisories_of_another_version_say_nothing_about_it() -> None:
    newer = CLEAN | {"info": {"version": "3.0"}}
    known = asked({"/pypi/thing/json": newer, "/pypi/thing/2.0/json": CLEAN})
    assert not known.is_wrong
    assert audit.report([known]) == ["older       thing 2.0: the newest is 3.0"]
    unknown = asked({"/pypi/thing/json": newer})
    assert unknown.is_incomplete
    assert any(line.startswith("NOT ASKED") and "thing 2.0" in line for line in audit.report([unknown]))


@pytest.mark.parametrize(("fits", "page", "code"), [(True, CLEAN, 0), (False, CLEAN, 1), (True, None, 2)])
def test_the_exit_code_tells_clean_from_wrong_from_not_asked(
    fits: bool, page: Any, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "consistent", lambda: fits)
    monkeypatch.setattr(audit, "pins", lambda _: [PIN])

    def answer(_request: httpx.Request) -> httpx.Response:
        if page is None:
            raise httpx.ConnectError("no network")
        return httpx.Response(200, json=page)

    assert audit.main([], httpx.MockTransport(answer)) == code
    assert ("cannot be reached" in capsys.readouterr().out) == (code == 2)
