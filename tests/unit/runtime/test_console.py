"""The console's files as they are served, and what may never be in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runtime.rights import DOORS
from tests.unit.runtime.test_handlers import ROOT, invoke, sample

STATIC = ROOT / "functions/console/static"
FILES = sorted(path.name for path in STATIC.iterdir())
SCRIPTS = [name for name in FILES if name.endswith(".js")]
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc|javascript:"
    r"|setAttribute\(\"style|createContextualFragment|localStorage|document\.cookie|https?://(?!www\.w3\.org/2000/svg)"
)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOCKET_API_ID", "def456")
    monkeypatch.setenv("SOCKET_STAGE", "live")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


def asked(file: str | None = None, **headers: str) -> Any:
    event = sample("console")
    event["headers"] |= headers
    if file is not None:
        event |= {"routeKey": "GET /console/{file}", "pathParameters": {"file": file}}
    return invoke("console", event)


def test_the_page_is_served_without_a_token_under_a_strict_policy() -> None:
    answer = asked()
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (200, "text/html; charset=utf-8")
    rules = dict(rule.split(" ", 1) for rule in answer["headers"]["content-security-policy"].split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self' wss://def456.execute-api.eu-central-1.amazonaws.com",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert answer["headers"]["x-content-type-options"] == "nosniff"
    assert answer["headers"]["referrer-policy"] == "no-referrer"


def test_on_a_laptop_the_policy_names_the_emulators_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    assert "connect-src 'self' ws://127.0.0.1:4566;" in asked()["headers"]["content-security-policy"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_served_once_and_then_found_unchanged(name: str) -> None:
    answer = asked(name)
    assert (answer["statusCode"], answer["body"]) == (200, (STATIC / name).read_text())
    kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
    assert answer["headers"]["content-type"].startswith(kinds[Path(name).suffix])
    again = asked(name, **{"if-none-match": answer["headers"]["etag"]})
    assert (again["statusCode"], again["body"]) == (304, "")
    assert asked(name, **{"if-none-match": '"another"'})["statusCode"] == 200


@pytest.mark.parametrize("name", ["", "nothing.js", "../app.py", "app.py", "..%2fapp.py", "/etc/passwd"])
def test_nothing_but_these_files_is_served(name: str) -> None:
    assert asked(name)["statusCode"] == 404


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_turns_no_text_into_markup_and_knows_no_other_host(name: str) -> None:
    assert SINKS.findall((STATIC / name).read_text()) == []


def test_the_page_has_no_script_or_style_of_its_own_and_only_relative_addresses() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", page) == []
    addresses = re.findall(r"(?:src|href)=\"([^\"]*)\"", page)
    assert {address for address in addresses if not address.startswith(("console/", "#"))} == set()
    assert {address.removeprefix("console/") for address in addresses if "/" in address} <= set(FILES)


def test_every_file_that_a_script_imports_is_there() -> None:
    imported = {
        name for script in SCRIPTS for name in re.findall(r"from \"\./([^\"]+)\"", (STATIC / script).read_text())
    }
    assert imported == set(SCRIPTS) - {"main.js"}


BY_COMMAND = {
    "GET /v1/targets": "the status of deliveries lists them, with more",
    "GET /v1/targets/{}": "the same",
    "PUT /v1/targets/{}": "it takes secrets, which are kept in files and not typed into a page",
    "DELETE /v1/targets/{}": "what is deleted cannot be had back; to stop a target, it is paused",
    "GET /v1/retention/{}/{}": "the list of policies has it",
    "PUT /v1/retention/{}/{}": "what may go is decided with care, and kept beside the deployment",
    "GET /v1/profiles": "the profile of a project is shown with its events",
    "PUT /v1/projects/{}/profile": "it decides what clients may send, and is kept beside the deployment",
    "PUT /v1/registry": "it is a file that is kept under version control",
    "POST /v1/runtimes/{}/diagnostics/grants": "it is asked for where its values are read",
    "GET /v1/runtimes/{}/diagnostics/{}": "raw sensitive values are not for a screen",
}
"""Doors of operators that the console does not use, and why. The command line has all of them."""


def test_every_door_of_operators_is_in_the_console_or_has_a_reason_not_to_be() -> None:
    doors = {re.sub("{[^}]+}", "{}", door.route) for door in DOORS if any("operator" in roles for roles in door.needs)}
    scripts = "\n".join((STATIC / name).read_text() for name in SCRIPTS)
    steering = re.findall(r'ask\("(PATCH|PUT|DELETE)", at`([^`]+)`', scripts)
    changed = {f"{method} {plain(path)}" for method, path in steering}
    named = {plain(path) for path in re.findall(r"[`\"](/v1/[^`\"]+)[`\"]", scripts)}
    used = changed | {f"{method} {path}" for path in named for method in ("GET", "POST")}
    assert doors - used - set(BY_COMMAND) == set()
    assert set(BY_COMMAND) - doors == set()
    assert len(doors) > 30


def plain(path: str) -> str:
    return re.sub(r"\$\{[^`]*?\}(?=/|$)", "{}", path)
