"""The console in a real browser, on a running hub with traffic: every screen, and what an operator does with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, WebSocketRoute, expect

from tests.browser import traffic
from tests.browser.conftest import NARROW, WIDE, Console
from tests.e2e.conftest import Hub
from tests.e2e.lake import eventually
from tests.e2e.receivers import Receiver, accept

SCREENS = {
    "overview": "Overview",
    "events": "Events",
    "events/sync/shop": "shop",
    "events/sync/shop?id=order-7-paid": "shop",
    "sessions": "Sessions",
    "sessions/call-42": "call-42",
    "streams": "Streams",
    "streams/pi-7": "pi-7",
    "targets": "Targets",
    "targets/builds": "builds",
    "tables": "Tables",
    "retention/sync/shop": "Retention",
    "audit": "Audit",
}
"""Each with its heading."""


CUT_OR_TINY = """(width) => [...document.querySelectorAll("main td, main dd, main button, main svg text, main code")]
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([one, box]) => box.width && (box.right > width || (one.ownerSVGElement && box.height < 10)))
  .map(([one, box]) => `${one.textContent} ${Math.round(box.right)} ${Math.round(box.height)}`)"""
"""What is cut off at the right, or too small to read."""


def settled(page: Page) -> None:
    """Nothing on the screen is still being loaded."""
    expect(page.locator(".loading")).to_have_count(0)


def table(page: Page, name: str) -> Any:
    return page.get_by_role("table", name=name)


def confirm(page: Page, verb: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=verb).click()


def audited(page: Page, action: str) -> None:
    """The last dialog shows the entry that the action has in the audit."""
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".audited")).to_contain_text(action)
    expect(dialog.locator(".audited")).to_contain_text("done")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


@pytest.mark.parametrize("place", SCREENS)
def test_a_screen_has_no_serious_barrier_in_light_or_dark_and_fits_a_telephone(console: Console, place: str) -> None:
    page = console.page
    console.go(place)
    expect(page.get_by_role("heading", level=1)).to_have_text(SCREENS[place])
    settled(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert console.serious_violations() == [], scheme
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.evaluate(CUT_OR_TINY, NARROW["width"]) == []
    assert console.serious_violations() == [], "on a telephone"


def test_a_token_in_the_fragment_leaves_the_address_at_once_and_ends_with_the_tab(stranger: Console) -> None:
    page, token = stranger.page, stranger.hub.token(**traffic.EVERYTHING)
    stranger.enter(token)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert page.evaluate("sessionStorage.getItem('millrace.token')") == token
    assert token not in page.url
    assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0
    page.go_back()
    assert token not in page.url
    page.goto(f"{stranger.url}#/audit")
    page.get_by_role("button", name="Forget token").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("Object.keys(sessionStorage).length") == 0


def test_a_pasted_token_opens_the_console(stranger: Console) -> None:
    page = stranger.page
    page.goto(stranger.url)
    assert stranger.serious_violations() == []
    page.get_by_label("Token").fill(f"  {stranger.hub.token(**traffic.EVERYTHING)}\n")
    page.get_by_role("button", name="Open the console").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_a_token_that_has_ended_or_is_not_ours_leads_back_to_the_door(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING, exp=1_700_000_000))
    expect(page.get_by_role("alert")).to_contain_text("The token ended")
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING, signed_with="another secret, long enough to sign with"))
    stranger.go("audit")
    expect(page.get_by_role("alert")).to_contain_text("did not take the token")


def test_a_consumer_is_told_which_role_is_missing_and_sees_nothing(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(client_id="app", projects=["shop"], roles=["consumer"]))
    for place in ("overview", "events", "events/sync/shop", "sessions", "targets", "tables", "retention", "audit"):
        stranger.go(place)
        expect(page.get_by_role("alert").first).to_contain_text("needs a token with the role operator")
        expect(page.get_by_role("alert").first).to_contain_text("of client app with the roles consumer")
        settled(page)
        expect(page.get_by_role("row")).to_have_count(0)
        assert stranger.serious_violations() == [], place


def test_an_operator_without_the_role_consumer_sees_events_but_no_transcript(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**{**traffic.EVERYTHING, "roles": ["operator"]}))
    stranger.go("sessions/call-42")
    expect(page.get_by_text("call.started")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("needs a token with the role consumer")


def test_an_operator_without_the_role_consumer_asks_for_new_events_instead_of_listening(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**{**traffic.EVERYTHING, "roles": ["operator"]}))
    stranger.go("events/sync/demo")
    page.get_by_role("button", name="Live tail").click()
    expect(page.get_by_text("asking every 2 s")).to_be_visible()
    traffic.submit(stranger.hub, traffic.order(9201), project="demo")
    expect(page.locator(".tail tbody tr:not(.below)")).to_contain_text("order-9201-paid")


def test_an_event_is_found_by_its_id_with_the_target_that_has_it(console: Console) -> None:
    page = console.page
    console.go("events")
    page.get_by_label("Ledgers that begin with").fill("sh")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="shop").click()
    page.get_by_label("Event id").fill("order-17-paid")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("heading", name="Event order-17-paid")).to_be_visible()
    expect(page.locator(".json")).to_contain_text('"EUR"')
    expect(table(page, "Deliveries of this event").get_by_role("row").nth(1)).to_contain_text("archive-hub")
    expect(table(page, "Deliveries of this event").get_by_role("row").nth(1)).to_contain_text("delivered")
    page.get_by_label("Event id").fill("no-such-event")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not found.")
    expect(page.get_by_role("alert")).to_contain_text("There is no such event in this ledger.")


def test_the_copied_command_asks_for_what_is_on_the_screen_and_holds_no_token(stranger: Console) -> None:
    page, token = stranger.page, stranger.hub.token(**traffic.EVERYTHING)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stranger.enter(token)
    stranger.go("events/sync/shop?after=4&type=order.paid")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_text("The command is copied.")).to_be_visible()
    command = page.evaluate("navigator.clipboard.readText()")
    assert token not in command
    answer = subprocess.run(
        ["bash", "-c", command], env={**os.environ, "TOKEN": token}, capture_output=True, check=True
    )
    assert json.loads(answer.stdout)["events"][0]["id"] == "order-4-paid"


def test_a_ledger_is_browsed_by_position_time_and_type(console: Console) -> None:
    page = console.page
    console.go("events/sync/shop")
    expect(page.locator(".ledger-facts")).to_contain_text("252 events · profile open")
    rows = table(page, "Events").locator("tbody tr:not(.below)")
    expect(rows).to_have_count(50)
    newest = int(rows.first.locator("td").first.inner_text())
    page.get_by_role("button", name="Older").click()
    expect(rows.first.locator("td").first).to_have_text(str(newest - 50))
    page.get_by_label("Position", exact=True).fill("3")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(rows.last.locator("td").first).to_have_text("3")
    rows.last.get_by_role("button").click()
    expect(page.locator(".json")).to_contain_text("order.paid")
    page.get_by_label("Type", exact=True).fill("order.shipped")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(rows).to_have_count(12)
    page.get_by_label("Type", exact=True).fill("")
    page.get_by_label("Time", exact=True).fill("2030-01-01T00:00:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No events here.")).to_be_visible()


def test_an_event_arrives_live_and_a_pause_holds_it_back(console: Console) -> None:
    page = console.page
    console.go("events/sync/demo")
    page.get_by_role("button", name="Live tail").click()
    expect(page.get_by_text("events arrive as they are committed")).to_be_visible()
    tailed = page.locator(".tail tbody tr:not(.below)")
    traffic.submit(console.hub, traffic.order(9001), project="demo")
    expect(tailed).to_have_count(1)
    expect(tailed.first).to_contain_text("order-9001-paid")
    tailed.first.get_by_role("button").focus()
    traffic.submit(console.hub, traffic.order(9003), project="demo")
    expect(tailed).to_have_count(2)
    expect(tailed.last.get_by_role("button")).to_be_focused()
    page.get_by_role("button", name="Pause").click()
    traffic.submit(console.hub, traffic.order(9002), project="demo")
    expect(page.get_by_role("button", name="Resume (1 waiting)")).to_be_visible()
    expect(tailed).to_have_count(2)
    page.get_by_role("button", name="Resume").click()
    expect(tailed.first).to_contain_text("order-9002-paid")
    assert console.serious_violations() == []


def test_a_lost_connection_is_said_and_nothing_is_lost_over_it(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    page.add_init_script(
        "window.sockets = []; const One = WebSocket; WebSocket = class extends One {"
        "constructor(url) { super(url); sockets.push(this); } }"
    )
    page.reload()
    stranger.go("events/sync/demo")
    page.get_by_role("button", name="Live tail").click()
    expect(page.get_by_text("events arrive as they are committed")).to_be_visible()
    page.evaluate("sockets.at(-1).close()")
    expect(page.get_by_text("connection lost")).to_be_visible()
    traffic.submit(stranger.hub, traffic.order(9101), traffic.order(9102), project="demo")
    expect(page.get_by_text("events arrive as they are committed")).to_be_visible()
    expect(page.locator(".tail tbody tr:not(.below)")).to_have_count(2)
    expect(page.locator(".notice.gap")).to_have_count(0)


def test_an_event_that_did_not_arrive_is_shown_loudly(stranger: Console) -> None:
    page = stranger.page

    def answer(socket: WebSocketRoute, message: str | bytes) -> None:
        asked = json.loads(message)
        if asked["type"] == "connect":
            socket.send(json.dumps({"type": "connected", "payload": {}}))
        elif asked["type"] == "sync":
            at = asked["payload"]["since_committed_id"]
            page_ = {"events": [], "has_more": False, "next_since_committed_id": at, "sync_to_committed_id": at}
            socket.send(json.dumps({"type": "sync_response", "payload": page_}))
            late = {"committed_id": at + 3, "id": "late", "event": {"type": "note"}, "partitions": ["p"]}
            socket.send(json.dumps({"type": "event_broadcast", "payload": late}))

    page.route_web_socket(re.compile("^ws"), lambda socket: socket.on_message(lambda message: answer(socket, message)))
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    stranger.go("events/sync/shop")
    page.get_by_role("button", name="Live tail").click()
    expect(page.locator(".notice.gap")).to_contain_text("Gap: positions 253 to 254 did not arrive.")
    expect(page.locator(".toast.bad")).to_contain_text("Gap: positions 253 to 254")
    expect(page.locator(".tail tbody tr:not(.below)")).to_contain_text("late")


def test_a_gap_in_a_stream_is_shown_loudly(console: Console) -> None:
    page = console.page
    console.go("events/streams/pi-7:main")
    expect(page.get_by_text("Positions below 5 were pruned by retention")).to_be_visible()
    page.get_by_label("from the oldest").check()
    page.get_by_role("button", name="Live tail").click()
    expect(page.locator(".notice.gap")).to_contain_text("4 events up to position 4 are gone")
    expect(page.locator(".tail tbody tr:not(.below)")).to_have_count(5)
    console.go("streams/pi-7")
    expect(page.locator(".problems")).to_contain_text("main: positions 1 to 4 are gone")
    expect(table(page, "Streams of this runtime").get_by_role("row", name=re.compile("main"))).to_contain_text("gap")


def test_a_session_grows_before_the_operators_eyes(console: Console) -> None:
    page = console.page
    console.go("sessions/call-42")
    expect(page.locator(".transcript")).to_contain_text("the carrier has it")
    expect(page.locator(".title")).to_contain_text("live")
    traffic.say(console.hub, ("user", "One more thing."), first=50)
    expect(page.locator(".transcript")).to_contain_text("One more thing.")
    expect(page.locator(".timeline")).to_contain_text("transcript.final")


def test_a_long_transcript_is_shown_in_parts(stranger: Console) -> None:
    page = stranger.page
    said = {"speaker": "user", "final": True, "sequence": 1}

    def part(route: Route) -> None:
        number = 2 if "afterStartMs=1000" in route.request.url else 1
        utterance = {**said, "utteranceId": f"u{number}", "text": f"part {number}", "startMs": number * 1000}
        route.fulfill(json={"utterances": [utterance], "hasMore": number == 1, "complete": True})

    page.route("**/transcript*", part)
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    stranger.go("sessions/call-42")
    expect(page.locator(".transcript")).to_contain_text("part 1")
    page.get_by_role("button", name="Go on with the transcript").click()
    expect(page.locator(".transcript li")).to_have_count(2)
    expect(page.get_by_role("button", name="Go on with the transcript")).to_have_count(0)


def test_a_grant_is_listed_with_its_reason_and_ended(console: Console) -> None:
    page = console.page
    asked = {"reason": "ticket 4711", "ttl_s": 600, "scope": {"streams": ["main"], "fields": ["peer_id"]}}
    traffic.sent(console.hub, "POST", "/v1/runtimes/pi-7/diagnostics/grants", asked)
    console.go("streams/pi-7")
    page.reload()
    row = table(page, "Grants").get_by_role("row").nth(1)
    expect(row).to_contain_text("ticket 4711")
    row.get_by_role("button", name="End the grant of ops").click()
    confirm(page, "End it")
    expect(page.get_by_role("dialog")).to_contain_text("grant revoked")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(row).to_contain_text("revoked")
    expect(row.get_by_role("button")).to_have_count(0)


def test_markers_are_on_a_plane_with_their_revisions(console: Console) -> None:
    page = console.page
    console.go("streams/pi-7")
    picture = page.get_by_role("img", name="3 markers")
    expect(picture).to_be_visible()
    expect(picture.locator("text").filter(has_text="Camp · r3")).to_have_count(1)
    expect(picture.locator("circle.past")).to_have_count(2)
    expect(table(page, "Markers").get_by_role("row")).to_have_count(4)
    expect(table(page, "Negotiations")).to_contain_text("max_poll_events 256")


def test_new_failures_appear_by_themselves_while_focus_and_open_rows_stay(console: Console) -> None:
    page = console.page
    console.go("targets/builds")
    rows = table(page, "Deliveries").locator("tbody > tr:not(.below)")
    expect(rows).to_have_count(8)
    page.get_by_role("button", name="Pause").focus()
    traffic.journal(console.hub, "build-9")
    expect(rows).to_have_count(9)
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    rows.first.get_by_role("button", name="Attempts").click()
    expect(table(page, "Last attempts")).to_be_visible()
    traffic.journal(console.hub, "build-10")
    expect(page.locator(".facts")).to_contain_text("Terminal failed10")
    expect(table(page, "Last attempts")).to_be_visible()
    rows.first.get_by_role("button", name="Attempts").click()
    expect(rows).to_have_count(10)


def test_a_failed_delivery_is_retried_from_the_event_that_a_customer_misses(console: Console, builds: Receiver) -> None:
    page = console.page
    console.go("events/delivery/default?id=build-10")
    row = table(page, "Deliveries of this event").get_by_role("row", name=re.compile("builds"))
    expect(row).to_contain_text("terminal failed")
    row.get_by_role("button", name="Retry at builds").click()
    confirm(page, "Retry")
    audited(page, "delivery retry")
    eventually(lambda: builds.ids.count("delivery:default:build-10") == 2, "it was not sent again")


def test_what_a_target_gave_up_on_is_retried_one_by_one_and_all_at_once(console: Console, builds: Receiver) -> None:
    page = console.page
    console.go("targets/builds")
    rows = table(page, "Deliveries").locator("tr:not(.below):not(.below *)").filter(has_text="terminal failed")
    expect(rows).to_have_count(10)
    rows.first.get_by_role("button", name="Attempts").click()
    expect(table(page, "Last attempts")).to_contain_text("no such build")
    builds.script = accept
    page.get_by_role("button", name="Retry delivery:default:build-1", exact=True).click()
    confirm(page, "Cancel")
    expect(rows).to_have_count(10)
    page.get_by_role("button", name="Retry delivery:default:build-1", exact=True).click()
    confirm(page, "Retry")
    audited(page, "delivery retry")
    expect(page.locator(".facts")).to_contain_text("Terminal failed9")
    page.get_by_role("button", name="Retry many").click()
    confirm(page, "Count them")
    expect(page.get_by_role("heading", name="Retry 9 deliveries?")).to_be_visible()
    confirm(page, "Retry them")
    expect(page.get_by_role("dialog")).to_contain_text("9 deliveries tried again.")
    audited(page, "target retry")
    expect(page.locator(".facts")).to_contain_text("Delivered10")
    expect(page.locator(".facts")).to_contain_text("Terminal failed0")
    page.get_by_role("button", name="Retry many").click()
    confirm(page, "Count them")
    expect(page.get_by_role("dialog")).to_contain_text("Nothing matches.")
    confirm(page, "Close")
    assert sorted(set(builds.ids)) == sorted(f"delivery:default:build-{number}" for number in range(1, 11))


def test_a_target_is_paused_and_resumed_with_an_entry_in_the_audit(console: Console) -> None:
    page = console.page
    console.go("targets/archive-hub")
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    audited(page, "target pause")
    expect(page.locator(".facts")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    confirm(page, "Resume")
    audited(page, "target resume")
    expect(page.locator(".facts")).to_contain_text("well")
    console.go("audit?client=ops")
    expect(table(page, "Audit entries").get_by_role("row").nth(1)).to_contain_text("target resume")


def test_the_rate_of_a_target_is_limited_and_set_free(console: Console) -> None:
    page = console.page
    console.go("targets/archive-hub")
    for wanted, verb, shown in (
        ("5", "At most 5 events per second", "second5"),
        ("", "No rate limit", "secondno limit"),
    ):
        page.get_by_role("button", name="Limit rate").click()
        page.get_by_label("Events per second, at most").fill(wanted)
        confirm(page, "Go on")
        expect(page.get_by_role("heading", name=verb)).to_be_visible()
        confirm(page, "Set")
        audited(page, "target p")
        expect(page.locator(".facts")).to_contain_text(shown)


def test_a_range_is_replayed_to_a_target_that_has_it(console: Console, builds: Receiver) -> None:
    page = console.page
    builds.script = accept
    console.go("targets/builds")
    page.get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Ledger").fill("default")
    dialog.get_by_label("To position").fill("3")
    confirm(page, "Count them")
    expect(page.get_by_role("heading", name="Replay 3 events?")).to_be_visible()
    confirm(page, "Replay them")
    expect(dialog).to_contain_text("3 events sent again.")
    audited(page, "target replay")


def test_a_quarantined_line_is_repaired_and_leaves_the_list(console: Console) -> None:
    page = console.page
    console.go("tables")
    expect(table(page, "Quarantine").get_by_role("row").nth(1)).to_contain_text("unknown version")
    page.get_by_role("button", name="Repair 9c1f").click()
    text = page.get_by_label("The line as JSON")
    expect(text).to_have_value(re.compile('"event_version": 9'))
    good = text.input_value().replace('"event_version": 9', '"event_version": 1')
    text.fill("{")
    confirm(page, "Go on")
    expect(page.get_by_role("dialog")).to_contain_text("This is not JSON")
    text.fill(good)
    confirm(page, "Go on")
    confirm(page, "Repair")
    audited(page, "quarantine repair")
    expect(page.get_by_text("Nothing is in quarantine.")).to_be_visible()
    page.get_by_role("combobox", name="Show").select_option("true")
    expect(table(page, "Quarantine").get_by_role("row").nth(1)).to_contain_text("driven again")


def test_the_overview_tells_of_every_stage_of_problems_and_of_who_is_connected(console: Console) -> None:
    page = console.page
    traffic.sent(console.hub, "POST", "/v1/targets/archive-hub/pause", {})
    console.go("overview")
    page.reload()
    expect(page.get_by_role("img", name=re.compile("The pipeline. Commit: .*Fan-out: .*Tables: "))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(r"Index: [\d,]+ events, up to date, no gaps"))).to_be_visible()
    expect(page.locator(".problems")).to_contain_text("Target archive-hub is paused")
    expect(page.locator(".problems")).to_contain_text("millrace targets resume archive-hub")
    expect(page.get_by_role("img", name=re.compile("Events per minute in the last hour: [1-9]"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^sync: events per minute in the last hour, [1-9]"))).to_be_visible()
    page.get_by_role("button", name="Resume archive-hub", exact=True).click()
    confirm(page, "Resume")
    audited(page, "target resume")
    expect(page.locator(".problems").filter(has_text="archive-hub")).to_have_count(0)


def test_a_stage_with_a_gap_is_red_in_the_picture(stranger: Console) -> None:
    def with_gap(route: Route) -> None:
        told = route.fetch().json()
        told["stages"]["archive"] |= {"gaps": 1, "lag_events": 5, "worst_lag_seconds": 2}
        route.fulfill(json=told)

    stranger.page.route("**/v1/overview", with_gap)
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    stage = stranger.page.locator(".pipeline.across .stage.bad").filter(has_text="Archive")
    expect(stage).to_contain_text("gaps in 1 ledger")


def test_an_answer_that_breaks_off_and_a_hub_in_trouble_are_told_apart(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    page.route("**/v1/audit*", lambda route: route.fulfill(status=200, body='{"events": ['))
    stranger.go("audit")
    expect(page.get_by_role("alert")).to_contain_text("The hub's answer broke off.")
    page.unroute("**/v1/audit*")
    page.get_by_role("button", name="Try again").click()
    expect(table(page, "Audit entries")).to_be_visible()
    page.route("**/v1/retention*", lambda route: route.fulfill(status=503, json={"code": "busy", "message": "Later."}))
    stranger.go("retention")
    expect(page.get_by_role("alert")).to_contain_text("The hub could not do this.")
    page.route("**/v1/delivery/status", lambda route: route.abort())
    stranger.go("targets")
    expect(page.get_by_role("alert")).to_contain_text("The hub does not answer.")
    stranger.errors[:] = [error for error in stranger.errors if "Failed to load resource" not in error]


def test_an_action_is_one_line_of_the_audit_and_one_without_an_outcome_stands_out(stranger: Console) -> None:
    page = stranger.page
    entries = [
        {"position": 3, "ts_ms": 3, "who": "ops", "action": "target_put", "action_id": "b", "outcome": "begun"},
        {"position": 2, "ts_ms": 2, "who": "ops", "action": "target_pause", "action_id": "a", "outcome": "done"},
        {"position": 1, "ts_ms": 1, "who": "ops", "action": "target_pause", "action_id": "a", "outcome": "begun"},
    ]
    page.route("**/v1/audit*", lambda route: route.fulfill(json={"events": entries, "next_before": 0}))
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    stranger.go("audit")
    rows = table(page, "Audit entries").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("begun, no outcome known")
    expect(rows.last).to_contain_text("done")


def test_a_dry_run_says_what_would_go_and_what_holds_the_rest(console: Console) -> None:
    page = console.page
    console.go("retention")
    expect(table(page, "Policies").get_by_role("row")).to_have_count(3)
    page.get_by_role("link", name="Dry run").click()
    expect(page.locator(".facts")).to_contain_text("Would go40 events")
    expect(table(page, "Holders")).to_contain_text("Target archive-hub")
    expect(page.get_by_text("every reader is further than the policies let go")).to_be_visible()


def test_who_holds_retention_back_is_named_with_its_position(console: Console) -> None:
    page, hub = console.page, console.hub
    traffic.submit(hub, *(traffic.order(7000 + number) for number in range(3)), project="demo")
    keeper = {"type": "stub", "paused": True, "sources": [{"contract": "sync", "scope": "demo"}]}
    traffic.sent(hub, "PUT", "/v1/targets/keeper", keeper)
    traffic.submit(hub, traffic.order(7003), project="demo")
    head = traffic.sent(hub, "GET", "/v1/ledgers/sync/demo")["head"]
    traffic.sent(hub, "PUT", "/v1/retention/sync/demo", {"advance_to": head})
    eventually(lambda: held_by(hub) == "target:keeper", "the other readers did not catch up")
    console.go("retention/sync/demo")
    held = page.locator(".notice.warning").filter(has_text="Target keeper holds it back: nothing above position")
    expect(held).to_be_visible()
    traffic.sent(hub, "DELETE", "/v1/targets/keeper")
    page.reload()
    expect(table(page, "Holders")).to_be_visible()
    expect(page.get_by_text("Target keeper")).to_have_count(0)


def held_by(hub: Hub) -> str:
    plan: dict[str, str] = traffic.sent(hub, "GET", "/v1/retention/sync/demo/plan")
    return plan["held_by"]


def test_a_hidden_console_asks_for_nothing(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    page.clock.install()
    stranger.go("targets")
    page.reload()
    settled(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(seen(request)))
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
    page.clock.run_for(10_000)
    first = len(asked)
    page.clock.run_for(600_000)
    assert len(asked) == first, "one that was on its way, and no other"
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => false})")
    with page.expect_request("**/v1/delivery/status"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_console_that_nobody_touches_asks_seldom_and_then_not_at_all(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    page.clock.install()
    page.route("**/v1/delivery/status", lambda route: route.fulfill(json={"delivery_targets": []}))
    stranger.go("targets")
    page.reload()
    settled(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(seen(request)))
    counts = []
    for _ in range(5):
        for _ in range(60):
            page.clock.run_for(5_000)
        counts.append(len(asked))
        asked.clear()
    looked_at, idle, idler, last, asleep = counts
    assert looked_at > 10, "every five seconds for two minutes, then every thirty"
    assert 0 < idle <= 10
    assert 0 < idler <= 11
    assert last <= 1, "one that was due as the quarter of an hour ended"
    assert asleep == 0
    expect(page.locator(".asleep")).to_contain_text("Nobody touched this page for a while")
    with page.expect_request("**/v1/delivery/status"):
        page.keyboard.press("Shift")
    expect(page.locator(".asleep")).to_be_hidden()


def seen(request: Request) -> str:
    return request.url


def test_the_keyboard_is_enough(console: Console) -> None:
    page = console.page
    console.go("targets")
    page.reload()
    settled(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    page.get_by_role("link", name="builds").press("Enter")
    page.get_by_role("button", name="Pause").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("builds")


HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "javascript:document.title='owned'",
    "\u202egnp.exe\u202c \u2067mirrored\u2069",
]


def test_hostile_values_are_text_and_nothing_but_text(console: Console) -> None:
    page = console.page
    events = [
        {"id": f"{value} {number}", "partitions": [value], "event": {"type": value, "payload": {value: value}}}
        for number, value in enumerate(HOSTILE)
    ]
    traffic.submit(console.hub, *events, project="demo")
    console.go("events/sync/demo")
    for value in HOSTILE:
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=value, exact=True)).first
        row.get_by_role("button").click()
        expect(page.locator(".json .key").get_by_text(value, exact=True)).to_be_visible()
    link = page.get_by_role("link", name=f"{HOSTILE[2]} 2")
    assert (link.get_attribute("href") or "").startswith("#/events/")
    link.click()
    expect(page.get_by_role("heading", name=f"Event {HOSTILE[2]} 2")).to_be_visible()
    assert page.locator("main script, main img, main a:not([href^='#'])").count() == 0
    assert "owned" not in page.title()
    isolated = page.locator(".json .key").first.evaluate("(one) => getComputedStyle(one).unicodeBidi")
    assert isolated == "isolate"


def test_large_values_are_drawn_in_parts_and_the_page_stays_quick(console: Console) -> None:
    page = console.page
    keys = {f"k{number:05}": number for number in range(10_000)}
    wide = {"event_id": "wide", "event_type": "wide", "payload": keys}
    long = [{"event_id": f"long-{n}", "event_type": "long", "payload": "x" * 250_000} for n in range(4)]
    for one in (wide, *long):
        traffic.sent(console.hub, "POST", "/api/v1/events/batch/", {"events": [one]})
    console.go("events/delivery/default?id=wide")
    page.get_by_text("10,000 keys").click()
    expect(page.locator(".json .pair")).to_have_count(203)
    page.get_by_role("button", name="Show more (200 of 10,000)").click()
    expect(page.locator(".json .pair")).to_have_count(403)
    console.go("events/delivery/default")
    for number in range(4):
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=f"long-{number}"))
        row.get_by_role("button").click()
    expect(page.get_by_role("button", name="show all 250,000 characters")).to_have_count(4)
    page.get_by_role("button", name="show all 250,000 characters").first.click()
    expect(page.get_by_role("button", name="show all 250,000 characters")).to_have_count(3)
    blocked = page.evaluate(
        "new Promise((done) => { const t = performance.now(); setTimeout(() => done(performance.now() - t)) })"
    )
    assert blocked < 1000


PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"


def test_a_value_of_a_megabyte_is_drawn_when_it_is_asked_for(stranger: Console) -> None:
    page = stranger.page
    stranger.enter(stranger.hub.token(**traffic.EVERYTHING))
    whole = {"position": 1, "id": "huge", "committed_ms": 1, "type": "huge", "partitions": [], "bytes": 1_000_000}
    told = {**whole, "by": {}, "pruned": False, "content": {"text": "\u202e<b>" + "y" * 1_000_000}}
    page.route("**/event?id=huge", lambda route: route.fulfill(json={"event": told, "deliveries": []}))
    stranger.go("events/sync/demo?id=huge")
    expect(page.locator(".json")).to_contain_text("<b>yyy")
    assert page.evaluate("document.querySelector('main').textContent.length") < 10_000
    begun = page.evaluate(PAINTED)
    page.get_by_role("button", name="show all 1,000,004 characters").click()
    assert page.evaluate(PAINTED) - begun < 5_000
    assert page.evaluate("document.querySelector('.json').textContent.length") > 1_000_000
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]
