// Targets: how each stands, what it has not got and why, and the levers.

import { ask, at, get, post } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { ago, number, plural } from "./format.js";
import { poll } from "./poll.js";
import { bulkRetry, replay } from "./levers.js";
import { button, choice, empty, facts, field, heading, load, panel, show, steer, table, tag, when } from "./ui.js";

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
  if (one.open_until_ms > Date.now()) return tag("left alone", "warning");
  if (one.deliveries?.terminal_failed) return tag("has failures", "warning");
  return tag("well", "good");
}

function target(content, id, { query, signal }) {
  const place = h("div", {});
  const actions = h("div", { class: "actions" });
  const deliveries = h("div", {});
  const status = query.get("status") || "";
  const kind = choice(STATUSES, status, { on: { change: () => (location.hash = link("targets", id, { status: kind.value })) } });
  fill(content, heading(foreign(id), h("a", { href: link("targets") }, "All targets")), actions, place,
    panel("Deliveries", h("div", { class: "tools" }, field("State", kind)), deliveries));
  const draw = () => load(place, async () => {
    const one = (await every(signal)).find((other) => other.target_id === id);
    if (!one) return empty("There is no such target, or the token may not see it.");
    fill(actions, levers(one, again));
    return about(one);
  });
  const rows = () => show(deliveries, () => page(id, status, "", again, signal));
  const again = () => Promise.all([draw().catch(() => undefined), rows()]);
  poll(draw, { every: 5000, signal });
  rows();
}

function about(one) {
  return [
    one.blocked || one.paused_why || one.stuck ? h("p", { class: "notice bad" }, foreign([one.blocked, one.blocked_detail, one.paused_why, one.stuck].filter(Boolean).join(": "))) : null,
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
      ["Drained", one.drain ? `since ${ago(one.drain.since_ms)}` : "not now"],
    ])),
  ];
}

function levers(one, again) {
  const id = one.target_id;
  const lever = (title, text, path, verb, told, danger) => async () => {
    if (await steer({ title, text, verb, danger, target: id, act: async () => (await post(path, {}), told) })) await again();
  };
  return [
    one.paused
      ? button("Resume", lever(`Resume ${id}?`, "It gets everything that it has missed.", at`/v1/targets/${id}/resume`, "Resume", "The target goes on."), { class: "primary" })
      : button("Pause", lever(`Pause ${id}?`, "It gets nothing until it is resumed. Retention keeps what it has not got.", at`/v1/targets/${id}/pause`, "Pause", "The target is paused.", true)),
    button("Deliver now", lever(`Deliver to ${id} now?`, "What is due is tried at once.", at`/v1/targets/${id}/drain`, "Deliver now", "A drain was asked for.")),
    button("Retry many …", () => bulkRetry(id).then(again)),
    button("Replay …", () => replay(one).then(again)),
  ];
}

async function page(id, status, after, again, signal) {
  const found = await get(at`/v1/targets/${id}/deliveries`, { status, after, max: 50 }, signal);
  if (!found.deliveries.length && !found.next_after) return empty("No deliveries in this state.");
  const next = h("div", {});
  if (found.next_after) next.append(button("More", () => show(fill(next), () => page(id, status, found.next_after, again, signal))));
  return h("div", {}, table("Deliveries", [
    ["Event", (one) => foreign(one.event_id), "mono wide"],
    ["Type", (one) => foreign(one.event_type)],
    ["State", (one) => tag(one.status.replaceAll("_", " "), KINDS[one.status] || "plain")],
    ["Attempts", (one) => number(one.attempts), "number"],
    ["Last", (one) => when(one.last_ms)],
    ["Next", (one) => when(one.next_ms)],
    ["Error", (one) => foreign(one.error), "wide"],
    ["", (one) => h("span", { class: "actions" }, attempts(id, one), retry(id, one, again))],
  ], found.deliveries, () => h("tr", { class: "below", hidden: true }, h("td", { colspan: 8 }))), next);
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
  return button("Retry", async () => {
    const done = await steer({
      title: "Try this delivery again?", text: ["Event ", foreign(one.event_id), " is sent to ", foreign(id), " again."], verb: "Retry", target: id,
      act: async () => (await ask("POST", at`/v1/targets/${id}/deliveries/${one.event_id}/retry`), "It is due now."),
    });
    if (done) await again();
  }, { "aria-label": `Retry ${one.event_id}` });
}

