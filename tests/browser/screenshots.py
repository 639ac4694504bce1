"""`make screenshots`: pictures of every screen of the console, of a hub of its own with something in it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import httpx
from playwright.sync_api import Page, expect, sync_playwright

from local.embedded import embedded_stack
from local.emulator import free_port
from local.stack import ROOT
from millrace_client.local_stack import secret_of
from tests.browser import traffic
from tests.e2e.conftest import Hub
from tests.e2e.receivers import receiver
from tests.support.browser import HOW, chromium

SCREENS = {
    "overview": "overview",
    "ledgers": "events",
    "events": "events/sync/shop",
    "event": "events/delivery/default?id=build-3",
    "session": "sessions/call-42",
    "streams": "streams/pi-7",
    "targets": "targets",
    "target": "targets/builds",
    "tables": "tables",
    "retention": "retention/sync/shop",
    "audit": "audit",
}
SIZES = {"wide": (1280, 860), "narrow": (390, 844)}


def filled(cleanup: ExitStack) -> Hub:
    home = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="millrace-pictures-")))
    running = cleanup.enter_context(embedded_stack(home, free_port()))
    secret = secret_of(running.endpoint_url, running.region, running.secret_arn)
    hub = Hub(running, secret, cleanup.enter_context(httpx.Client(base_url=running.http_url, timeout=60)))
    builds = cleanup.enter_context(receiver(traffic.give_up))
    traffic.fill(hub, builds.url)
    return hub


def taken(page: Page, folder: Path, name: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    page.screenshot(path=folder / f"{name}.png")


def states(page: Page, hub: Hub, folder: Path, suffix: str) -> int:
    """What one sees before signing in, without the right, of an empty hub, of one in trouble, and while one acts."""
    console = f"{hub.http_url}/console"
    page.goto(console)
    taken(page, folder, f"sign-in-{suffix}")
    page.goto(f"{console}#token={hub.token(client_id='app', projects=['shop'], roles=['consumer'])}")
    page.wait_for_function("!location.hash.startsWith('#token')")
    taken(page, folder, f"forbidden-{suffix}")
    page.goto(f"{console}#token={hub.token(**{**traffic.EVERYTHING, 'tenant': 'nobody'})}")
    page.wait_for_function("!location.hash.startsWith('#token')")
    for name in ("overview", "events", "targets", "audit"):
        page.goto(f"{console}#/{name}")
        taken(page, folder, f"empty-{name}-{suffix}")
    page.goto(f"{console}#token={hub.token(**traffic.EVERYTHING)}")
    page.wait_for_function("!location.hash.startsWith('#token')")
    page.goto(f"{console}#/events/streams/pi-7:main")
    page.get_by_label("from the oldest").check()
    page.get_by_role("button", name="Live tail").click()
    expect(page.locator(".live-state")).not_to_be_empty()
    page.wait_for_timeout(2_000)
    taken(page, folder, f"live-gap-{suffix}")
    page.goto(f"{console}#/targets/builds")
    page.get_by_role("button", name="Retry many").click()
    taken(page, folder, f"retry-{suffix}")
    page.keyboard.press("Escape")
    page.route("**/v1/**", lambda route: route.abort())
    page.goto(f"{console}#/overview")
    taken(page, folder, f"no-answer-{suffix}")
    return 9


def take(page: Page, hub: Hub, folder: Path, suffix: str) -> int:
    page.goto(f"{hub.http_url}/console#token={hub.token(**traffic.EVERYTHING)}")
    for name, place in SCREENS.items():
        page.goto(f"{hub.http_url}/console#/{place}")
        taken(page, folder, f"{name}-{suffix}")
    return len(SCREENS)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.browser.screenshots", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "build/screenshots", help="the folder for the pictures")
    folder: Path = parser.parse_args(argv).to
    if chromium() is None:
        print(f"There is no Chromium on this machine. To get one: {HOW}", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60_000)
    count = 0
    with ExitStack() as cleanup, sync_playwright() as playwright:
        hub = filled(cleanup)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme=scheme,
                )
                count += take(context.new_page(), hub, folder, f"{size}-{scheme}")
                count += states(context.new_page(), hub, folder, f"{size}-{scheme}")
                context.close()
        browser.close()
    print(f"{count} pictures are in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
