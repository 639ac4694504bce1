"""The API reference as it is served: Swagger UI from a pinned package, and a page of our own around it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from millrace.runtime.static import swagger_ui
from tests.unit.runtime.test_handlers import ROOT, invoke, sample

OWN = ROOT / "functions/meta/reference"
SCRIPT = "swagger-ui-bundle.min.js"
LAMBDA_ANSWER_BYTES = 6 * 1024 * 1024


def asked(file: str | None = None, **headers: str) -> Any:
    event = {**sample("console"), "routeKey": "GET /docs"}
    event["headers"] |= headers
    if file is not None:
        event |= {"routeKey": "GET /docs/{file}", "pathParameters": {"file": file}}
    return invoke("meta", event)


def test_the_package_brings_a_version_that_takes_openapi_31() -> None:
    version = re.search(r'PACKAGE_VERSION:"(\d+)\.', (swagger_ui() / SCRIPT).read_text())
    assert version is not None
    assert int(version[1]) >= 5
    assert json.loads((ROOT / "functions/meta/openapi.json").read_text())["openapi"].startswith("3.1")


def test_the_page_is_served_without_a_token_and_takes_nothing_from_elsewhere() -> None:
    answer = asked()
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (200, "text/html; charset=utf-8")
    rules = dict(rule.split(" ", 1) for rule in answer["headers"]["content-security-policy"].split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    for text in (path.read_text() for path in OWN.iterdir() if path.suffix != ".svg"):
        assert "http" not in text
    named = re.findall(r'(?:src|href)="docs/([^"]+)"', answer["body"])
    assert len(named) == 5
    for file in named:
        assert asked(file)["statusCode"] == 200


@pytest.mark.parametrize("name", [SCRIPT, "swagger-ui.min.css", "reference.js"])
def test_a_file_fits_into_an_answer_and_is_sent_once(name: str) -> None:
    answer = asked(name)
    assert answer["statusCode"] == 200
    assert len(json.dumps(answer)) < LAMBDA_ANSWER_BYTES
    again = asked(name, **{"if-none-match": answer["headers"]["etag"]})
    assert (again["statusCode"], again["body"]) == (304, "")


@pytest.mark.parametrize("name", ["app.py", "openapi.json", "html.py", "..", "../app.py", "reference/index.html", ""])
def test_no_other_file_can_be_asked_for(name: str) -> None:
    assert asked(name)["statusCode"] == 404
