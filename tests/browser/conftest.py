"""One browser and one hub for all tests; every page is watched for errors and for what its policy forbids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from tests.browser import traffic
from tests.e2e.conftest import Hub, stack
from tests.e2e.receivers import Receiver, receiver
from tests.support.browser import AXE, chromium

__all__ = ["stack"]

PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)
WIDE: ViewportSize = {"width": 1280, "height": 860}
NARROW: ViewportSize = {"width": 390, "height": 844}
WATCH = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`forbidden by policy: ${event.violatedDirective} ${event.blockedURI}`));"""
SERIOUS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(({html}) => html).join(" | ")}`)"""


@dataclass
class Console:
    """A person with a token in front of the console."""

    hub: Hub
    page: Page
    errors: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.hub.http_url}/console"

    def enter(self, token: str) -> None:
        self.page.goto(f"{self.url}#token={token}")

    def go(self, place: str) -> None:
        self.page.goto(f"{self.url}#/{place}")

    def serious_violations(self) -> list[str]:
        self.page.evaluate(AXE.read_text())
        found: list[str] = self.page.evaluate(SERIOUS)
        return found

    def note(self, message: ConsoleMessage) -> None:
        """What the hub answers with an error is the console's to show, and no error of the page."""
        answered = message.text.startswith("Failed to load resource: the server responded with a status of 4")
        if message.type == "error" and not answered:
            self.errors.append(message.text)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer: while it is there, its event loop is this thread's, and no other test could run one."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def builds() -> Iterator[Receiver]:
    """Where the target `builds` delivers to; at first it gives up on everything."""
    with receiver(traffic.give_up) as running:
        yield running


@pytest.fixture(scope="session")
def hub(stack: Hub, builds: Receiver) -> Hub:
    traffic.fill(stack, builds.url)
    return stack


def opened(browser: Browser, hub: Hub, cleanup: ExitStack, **settings: Any) -> Console:
    context: BrowserContext = browser.new_context(**{"viewport": WIDE, **settings})
    cleanup.callback(context.close)
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(WATCH)
    console = Console(hub, context.new_page())
    console.page.on("console", console.note)
    console.page.on("pageerror", lambda error: console.errors.append(str(error)))
    return console


@pytest.fixture
def stranger(browser: Browser, hub: Hub) -> Iterator[Console]:
    """In a tab of its own in front of the console, without a token yet."""
    with ExitStack() as cleanup:
        console = opened(browser, hub, cleanup)
        yield console
        assert console.errors == []


@pytest.fixture(scope="module")
def tab(browser: Browser, hub: Hub) -> Iterator[Console]:
    with ExitStack() as cleanup:
        console = opened(browser, hub, cleanup)
        console.enter(hub.token(**traffic.EVERYTHING))
        yield console


@pytest.fixture
def console(tab: Console) -> Iterator[Console]:
    """An operator who is signed in, in the one tab that these tests share."""
    tab.page.set_viewport_size(WIDE)
    tab.errors.clear()
    yield tab
    assert tab.errors == []
