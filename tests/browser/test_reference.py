"""The API reference at /docs in Chromium: it shows every operation, and "try it out" works with a pasted token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Request, expect

from infra.openapi.build import META
from tests.browser.conftest import Console, opened
from tests.e2e.conftest import Hub

OPENAPI = json.loads((META / "openapi.json").read_text())
OPERATIONS = [one["operationId"] for methods in OPENAPI["paths"].values() for one in methods.values()]


@pytest.fixture
def asked() -> list[Request]:
    return []


@pytest.fixture
def reader(browser: Browser, stack: Hub, asked: list[Request]) -> Iterator[Console]:
    """Somebody who has opened the page. Afterwards, its policy has forbidden nothing and its script has not failed."""
    with ExitStack() as cleanup:
        shown = opened(browser, stack, cleanup)
        shown.page.on("request", lambda one: asked.append(one))  # noqa: PLW0108 - Playwright marks what it is given
        shown.page.goto(f"{stack.http_url}/docs")
        expect(shown.page.locator(".opblock").first).to_be_visible()
        yield shown
        assert shown.errors == []
        host = urlsplit(stack.http_url).netloc
        assert {urlsplit(one.url).netloc for one in asked if not one.url.startswith("data:")} == {host}


def operation(reader: Console, name: str) -> Locator:
    return reader.page.locator(f".opblock[id$='-{name}']")


def sign_in(reader: Console, token: str) -> None:
    reader.page.get_by_role("button", name="Authorize").first.click()
    reader.page.get_by_label("auth-bearer-value").fill(token)
    reader.page.get_by_role("button", name="Apply credentials").click()
    reader.page.get_by_role("button", name="Close").click()


def test_every_operation_of_the_description_is_shown(reader: Console) -> None:
    shown = reader.page.locator(".opblock").evaluate_all("found => found.map(one => one.id.split('-').pop())")
    assert sorted(shown) == sorted(OPERATIONS)
    assert reader.page.locator(".version", has_text="OAS 3.1").count() == 1


def test_try_it_out_sends_the_example_with_the_pasted_token(reader: Console, stack: Hub, asked: list[Request]) -> None:
    token = stack.token(projects=["demo"], partitions=["*"], roles=["producer"])
    sign_in(reader, token)
    submit = operation(reader, "submitEvents")
    submit.locator(".opblock-summary-control").click()
    submit.get_by_role("button", name="Try it out").click()
    submit.get_by_placeholder("project").fill("demo")
    submit.get_by_role("button", name="Execute").click()
    answer = submit.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_have_text("200")
    expect(answer.locator(".highlight-code, .microlight").first).to_contain_text('"status": "committed"')
    (sent,) = [one for one in asked if one.method == "POST"]
    assert sent.url == f"{stack.http_url}/v1/projects/demo/submit_events"
    assert sent.headers["authorization"] == f"Bearer {token}"
    assert all(token not in one.url for one in asked)
    stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    assert token not in reader.page.evaluate(stored)


def test_without_a_token_the_hub_says_so(reader: Console) -> None:
    overview = operation(reader, "getOverview")
    overview.locator(".opblock-summary-control").click()
    overview.get_by_role("button", name="Try it out").click()
    overview.get_by_role("button", name="Execute").click()
    answer = overview.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_contain_text("401")
