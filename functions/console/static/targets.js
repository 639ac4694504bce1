// Targets: how each stands, what it has not got and why, and the levers.

import { at, get } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { ago, duration, number, plural, words } from "./format.js";
import { poll } from "./poll.js";
import { deliverNow, limitRate, pause, replay, resume, retryOne, retrySome } from "./levers.js";
import { button, choice, empty, facts, field, heading, load, panel, rowBelow, show, table, tag, when } from "./ui.js";

const MOST_BEHIND = 5;

const STATUSES = [["", "open and failed"], ["terminal_failed", "terminal failed"], ["rejected", "rejected"], ["pending", "pending"], ["transient", "transient"], ["success", "delivered"]];
export const KINDS = { success: "good", accepted: "good", duplicate: "good", pending: "plain", transient: "warning", rejected: "warning", terminal_failed: "bad" };

export function targets(content, here) {
  if (here.parts[0]) target(content, here.parts[0], here);
  else list(content, here);
}

const every = async (signal) => (await get("/v1/delivery/status", {}, signal)).delivery_targets;

function list(content, { signal }) {
  const place = h("div", {});
  fill(content, heading("Targets"), place);
  poll(() => load(place, async () => {
    const all = await every(signal);
    if (!all.length) return empty("No targets.", "A target gets what is committed. Make one with ", h("code", {}, "millrace targets put"), ".");
    return table("Targets", [
      ["Target", (one) => h("a", { href: link("targets", one.target_id) }, foreign(one.target_id))],
      ["Health", health],
      ["Type", (one) => `${one.type} · ${one.mode}`],
      ["Delivered", (one) => number(one.delivered_count), "number"],
      ["Due", (one) => (one.has_due ? tag("due", "plain") : "–")],
      ["Pending", (one) => number(one.deliveries.pending), "number"],
      ["Transient", (one) => count(one.deliveries.transient, "warning"), "number"],
      ["Rejected", (one) => count(one.deliveries.rejected, "warning"), "number"],
      ["Failed", (one) => count(one.deliveries.terminal_failed, "bad"), "number"],
      ["Hears of", (one) => foreign(one.sources.map((source) => `${source.contract} ${source.scope}`).join(", "))],
    ], all);
  }), { every: 5000, signal });
}

const count = (value, kind) => (value ? tag(number(value), kind) : "0");

export function health(one) {
  if (one.paused) return tag("paused", "warning");
  if (one.blocked) return tag(one.blocked.replaceAll("_", " "), "bad");
  if (one.stuck) return tag("drain died", "bad");
  if (one.open_until_ms > Date.now()) return tag("left alone for a while", "warning");
  if (one.deliveries?.terminal_failed) return tag("has failures", "warning");
  return tag("well", "good");
}

function target(content, id, { query, signal }) {
  const place = h("div", {});
  const actions = h("div", { class: "actions levers" });
  const deliveries = h("div", {});
  const status = query.get("status") || "";
  const kind = choice(STATUSES, status, { on: { change: () => (location.hash = link("targets", id, { status: kind.value })) } });
  const list = panel("Deliveries", h("div", { class: "tools" }, field("State", kind)), deliveries);
  list.hidden = true;
  let known = null;
  fill(content, heading(foreign(id), h("a", { href: link("targets") }, "All targets")), actions, place, list);
  const draw = () => load(place, async () => {
    const found = (await every(signal)).find((other) => other.target_id === id);
    list.hidden = !found;
    if (!found) {
      fill(actions);
      return empty("There is no such target.", "Or the token does not reach it.");
    }
    const behind = await Promise.all(found.due.slice(0, MOST_BEHIND).map((due) => behindIn(due, id, signal)));
    known = found;
    await load(actions, async () => levers(id, () => known, again));
    return about(found, behind.filter(Boolean));
  });
  const rows = () => load(deliveries, () => page(id, status, "", again, signal));
  const again = () => Promise.all([draw(), rows()]).catch(() => undefined);
  // What somebody looks at stays: rows are not drawn again while one is open, or more of them were asked for.
  const isRead = () => deliveries.querySelector("[aria-expanded=true], [data-more]");
  poll(async () => {
    await draw();
    if (!list.hidden && !isRead()) await rows();
  }, { every: 5000, signal });
}

async function behindIn({ contract, scope }, id, signal) {
  const ledger = await get(at`/v1/ledgers/${contract}/${scope}`, {}, signal).catch(() => null);
  const reader = ledger?.targets.find((one) => one.target_id === id);
  return reader?.lag_events ? { contract, scope, ...reader } : null;
}

function about(one, behind) {
  const why = [one.blocked, one.blocked_detail, one.paused_why, one.stuck].filter(Boolean).map(words).join(": ");
  return [
    why ? h("p", { class: "notice bad" }, foreign(why), one.open_until_ms > Date.now() ? [" – it is left alone until ", when(one.open_until_ms), ", or until you deliver now."] : null) : null,
    panel(null, facts([
      ["Health", health(one)],
      ["Type", `${one.type} · ${one.mode}`],
      ["Address", foreign(one.url)],
      ["Signed", one.unsigned ? tag("unsigned", "warning") : "yes, or not needed"],
      ["Delivered", number(one.delivered_count)],
      ["Pending", number(one.deliveries.pending)],
      ["Transient", number(one.deliveries.transient)],
      ["Rejected", number(one.deliveries.rejected)],
      ["Terminal failed", count(one.deliveries.terminal_failed, "bad")],
      ["Failures in a row", number(one.failures_in_a_row)],
      ["At most per second", one.max_per_second ?? "no limit"],
      ["Due", one.has_due ? foreign(one.due.map((due) => `${due.contract} ${due.scope}`).join(", ")) : "nothing"],
      ["Hears of", foreign(one.sources.map((source) => `${source.contract} ${source.scope}`).join(", "))],
      ["Families", foreign(one.families.join(", ") || "all")],
      ["At work", one.drain ? `a drain, since ${ago(one.drain.since_ms)}` : "no drain now"],
    ])),
    behind.length ? panel("Not sent yet", table("Not sent yet", [
      ["Ledger", (due) => h("a", { href: link("events", due.contract, due.scope, { after: due.position }) }, foreign(`${due.contract} ${due.scope}`))],
      ["Position", (due) => number(due.position), "number"],
      ["Behind", (due) => number(due.lag_events), "number"],
      ["Oldest", (due) => `${duration(due.lag_seconds)} ago`],
    ], behind)) : null,
  ];
}

// Drawn again only when it looks different, so a lever asks for the target as it stands when it is pulled.
function levers(id, known, again) {
  const lever = (text, work, attrs) => button(text, () => work().then((done) => done && again()), attrs);
  return [
    known().paused ? lever("Resume", () => resume(id), { class: "primary" }) : lever("Pause", () => pause(id)),
    lever("Deliver now", () => deliverNow(id)),
    lever("Retry many …", () => retrySome(id)),
    lever("Replay …", () => replay(known())),
    lever("Limit rate …", () => limitRate(known())),
  ];
}

async function page(id, status, after, again, signal) {
  const found = await get(at`/v1/targets/${id}/deliveries`, { status, after, max: 50 }, signal);
  if (!found.deliveries.length && !found.next_after) return empty("No deliveries in this state.");
  const next = h("div", {});
  if (found.next_after) next.append(button("More", () => {
    next.dataset.more = "";
    show(fill(next), () => page(id, status, found.next_after, again, signal));
  }));
  return h("div", {}, table("Deliveries", [
    ["Event", (one) => foreign(one.event_id), "mono wide"],
    ["Type", (one) => foreign(one.event_type)],
    ["State", (one) => tag(one.status.replaceAll("_", " "), KINDS[one.status] || "plain")],
    ["Attempts", (one) => number(one.attempts), "number"],
    ["Last", (one) => when(one.last_ms)],
    ["Next", (one) => when(one.next_ms)],
    ["Error", (one) => foreign(one.error), "wide"],
    ["", (one) => h("span", { class: "actions" }, attempts(id, one), retry(id, one, again))],
  ], found.deliveries, () => rowBelow(8)), next);
}

function attempts(id, one) {
  const toggle = button("Attempts", async () => {
    const below = toggle.closest("tr").nextElementSibling;
    below.hidden = !below.hidden;
    toggle.setAttribute("aria-expanded", String(!below.hidden));
    if (!below.hidden) await show(below.firstChild, () => history(id, one.event_id));
  }, { class: "quiet", "aria-expanded": "false" });
  return toggle;
}

async function history(id, eventId) {
  const told = await get(at`/v1/targets/${id}/attempts`, { event_id: eventId });
  return [
    h("p", { class: "summary" }, plural(told.attempts, "attempt"), " since ", when(told.first_ms), told.next_ms ? [", next ", ago(told.next_ms)] : null, " · ",
      h("a", { href: link("events", told.contract, told.scope, { after: Math.max(0, told.position - 1) }) }, `${told.contract} position ${told.position}`)),
    table("Last attempts", [
      ["When", (attempt) => when(attempt.at_ms)], ["State", (attempt) => tag(attempt.status.replaceAll("_", " "), KINDS[attempt.status] || "plain")],
      ["Answer", (attempt) => attempt.answer ?? "–", "number"], ["Error", (attempt) => foreign(attempt.error)],
    ], [...told.history].reverse()),
  ];
}

function retry(id, one, again) {
  if (KINDS[one.status] === "good") return null;
  return button("Retry", () => retryOne(id, one.event_id).then((done) => done && again()), { "aria-label": `Retry ${one.event_id}` });
}
