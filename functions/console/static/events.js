// Events: choose a ledger, browse it by position, id or time, and watch events arrive.

import { at, curl, get } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { bytes, duration, number } from "./format.js";
import { json } from "./json.js";
import { poll } from "./poll.js";
import { liveTail } from "./tail.js";
import { retryOne } from "./levers.js";
import { button, choice, copy, empty, failed, field, heading, load, panel, rowBelow, show, table, tag, when } from "./ui.js";

const CONTRACTS = ["sync", "realtime", "streams", "catalog", "delivery"];
const PAGE = 50;
const LOOKED_AT = 2000;
const MOST_ANSWERS = 12;

export function events(content, here) {
  const [contract, scope] = here.parts;
  if (contract && scope) browse(content, contract, scope, here);
  else choose(content, here);
}

function choose(content, { query, signal }) {
  const contract = query.get("contract") || "sync";
  const list = h("div", {});
  const kind = choice(CONTRACTS, contract, { on: { change: () => (location.hash = link("events", { contract: kind.value, prefix: prefix.value })) } });
  const prefix = h("input", { value: query.get("prefix") || "", placeholder: "beginning of a name", type: "search" });
  const search = (event) => {
    event.preventDefault();
    location.hash = link("events", { contract: kind.value, prefix: prefix.value });
  };
  fill(content, heading("Events"),
    h("form", { class: "tools", on: { submit: search } }, field("Contract", kind), field("Ledgers that begin with", prefix), h("button", {}, "Search")), list);
  show(list, () => ledgers(contract, query.get("prefix") || "", "", signal));
}

export async function ledgers(contract, prefix, after, signal, to = (one) => link("events", one.contract, one.scope)) {
  const page = await get("/v1/ledgers", { contract, prefix, after, max: 50 }, signal);
  if (!page.ledgers.length && !page.next) {
    return empty(prefix ? "No ledger begins like this." : "There is no ledger yet.", prefix ? "Names are compared letter by letter, capitals too." : `A ledger of the contract ${contract} comes into being with its first event.`);
  }
  const place = h("div", {});
  const more = page.next && button("More ledgers", async () => {
    try {
      place.replaceChildren(await ledgers(contract, prefix, page.next, signal, to));
    } catch (problem) {
      fill(place, failed(problem));
    }
  });
  if (more) place.append(more);
  return h("div", {}, table("Ledgers", [
    ["Ledger", (one) => h("a", { href: to(one) }, foreign(one.scope))],
    ["Head", (one) => number(one.head), "number"],
    ["Floor", (one) => number(one.floor), "number"],
    ["Events", (one) => number(one.events), "number"],
    ["Last commit", (one) => when(one.last_commit_ms)],
    ["Fan-out", (one) => lag(one.stages.fan_out)],
    ["Index", (one) => lag(one.stages.index)],
    ["Archive", (one) => lag(one.stages.archive)],
    ["Targets", (one) => targetsOf(one)],
  ], page.ledgers), place);
}

export function lag(stage) {
  if (!stage) return h("span", { class: "muted" }, "–");
  if (!stage.lag_events) return tag("up to date", "good");
  return tag(`${number(stage.lag_events)} · ${duration(stage.lag_seconds)}`, stage.lag_seconds < 30 ? "plain" : stage.lag_seconds < 300 ? "warning" : "bad");
}

function targetsOf(one) {
  if (!one.targets.length) return h("span", { class: "muted" }, "none");
  return one.targets.map((target) => h("span", { class: "pair-inline" }, h("a", { href: link("targets", target.target_id) }, foreign(target.target_id)), " ", lag(target)));
}

function browse(content, contract, scope, { query, signal }) {
  const facts = h("div", { class: "ledger-facts" });
  const place = h("div", {});
  const filters = { partition: query.get("partition"), type: query.get("type") };
  const go = (more) => (location.hash = link("events", contract, scope, { ...filters, ...more }));
  const tail = liveTail({ contract, scope, filters, signal, rows: eventRows });
  fill(content, heading(foreign(scope), tag(contract), h("a", { href: link("events", { contract }) }, "All ledgers")), facts, tools(filters, go, tail), tail.place, place);
  tail.onChange((isOn) => (place.hidden = isOn));
  const held = contract === "sync" ? get(at`/v1/projects/${scope}/profile`, {}, signal).catch(() => null) : null;
  poll(() => load(facts, async () => summary(await get(at`/v1/ledgers/${contract}/${scope}`, {}, signal), await held)), { every: 10_000, signal });
  const id = query.get("id");
  show(place, () => (id ? one(contract, scope, id, signal) : page(contract, scope, query, filters, go, signal, tail)));
}

const summary = (ledger, held) => h("p", { class: "summary" },
  "head ", h("b", {}, number(ledger.head)), " · floor ", h("b", {}, number(ledger.floor)), " · ", h("b", {}, number(ledger.events)), " events", held ? [" · profile ", h("b", {}, held.profile)] : null, " · fan-out ", lag(ledger.stages.fan_out),
  ledger.stages.index ? [" index ", lag(ledger.stages.index)] : null, " archive ", lag(ledger.stages.archive), " targets ", targetsOf(ledger));

function tools(filters, go, tail) {
  const position = h("input", { inputmode: "numeric", pattern: "[0-9]*", size: 8 });
  const id = h("input", { size: 18 });
  const moment = h("input", { type: "datetime-local", step: 1 });
  const partition = h("input", { value: filters.partition || "", size: 12 });
  const type = h("input", { value: filters.type || "", size: 14 });
  const jump = (event) => {
    event.preventDefault();
    const chosen = { partition: partition.value, type: type.value };
    if (id.value) go({ id: id.value });
    else if (moment.value) go({ ...chosen, at_ms: new Date(moment.value).getTime() });
    else if (position.value) go({ ...chosen, after: Math.max(0, Number(position.value) - 1) });
    else go(chosen);
  };
  return h("form", { class: "tools", on: { submit: jump } },
    field("Position", position), field("Event id", id), field("Time", moment), field("Partition", partition), field("Type", type),
    h("button", { class: "primary" }, "Show"), tail.controls);
}

async function page(contract, scope, query, filters, go, signal, tail) {
  const path = at`/v1/ledgers/${contract}/${scope}/events`;
  const filtered = Boolean(filters.partition || filters.type);
  const step = filtered ? LOOKED_AT : PAGE;
  const ask = { ...filters, max: filtered ? 200 : PAGE, after: query.get("after"), at_ms: query.get("at_ms") };
  const newest = ask.after === null && ask.at_ms === null;
  if (newest) {
    const { head } = await get(at`/v1/ledgers/${contract}/${scope}`, {}, signal);
    ask.after = Math.max(0, head - step);
  }
  let found = await get(path, ask, signal);
  // An answer has about 1 MB: with large events it takes several to come to the newest.
  for (let more = 0; newest && found.next_after < found.head && more < MOST_ANSWERS; more += 1) {
    const next = await get(path, { ...ask, after: found.next_after }, signal);
    found = { ...next, events: [...found.events, ...next.events] };
  }
  tail.begin(found.head);
  const first = ask.after === null ? (found.events[0]?.position ?? found.next_after) - 1 : Number(ask.after);
  const nav = h("nav", { class: "pages", "aria-label": "Pages" },
    button("Oldest", () => go({ after: 0 }), { disabled: first <= 0 }),
    button("Older", () => go({ after: Math.max(0, first - step) }), { disabled: first <= 0 }),
    h("span", {}, `positions ${number(first + 1)} to ${number(found.next_after)} of ${number(found.head)}`),
    button("Newer", () => go({ after: found.next_after }), { disabled: found.next_after >= found.head }),
    button("Newest", () => go({}), { disabled: found.next_after >= found.head }),
    button("Copy as curl", () => copy(curl(path, ask), "The command is copied. It reads the token from $TOKEN."), { class: "quiet" }));
  const pruned = first + 1 < found.floor && h("p", { class: "notice warning" }, `Positions below ${number(found.floor)} were pruned by retention: their ids stay, their content is gone.`);
  if (!found.events.length) return [pruned, empty(filtered ? "No event here passes the filter." : "No events here.", filtered ? `Positions ${number(first + 1)} to ${number(found.next_after)} were looked at.` : ""), nav];
  return [pruned, missing(found.events, filtered), nav, eventRows(contract, scope, [...found.events].reverse())];
}

function missing(list, filtered) {
  if (filtered) return null;
  const gaps = list.slice(1).flatMap((event, index) => (event.position > list[index].position + 1 ? [`${list[index].position + 1}–${event.position - 1}`] : []));
  return gaps.length ? h("p", { class: "notice bad", role: "alert" }, `Not shown to this token: positions ${gaps.slice(0, 10).join(", ")}${gaps.length > 10 ? " …" : ""}.`) : null;
}

export function eventRows(contract, scope, list) {
  return table("Events", [
    ["Position", (event) => number(event.position), "number"],
    ["Committed", (event) => when(event.committed_ms)],
    ["Type", (event) => (event.pruned ? tag("pruned", "warning") : foreign(event.type))],
    ["Id", (event) => h("a", { href: link("events", contract, scope, { id: event.id }) }, foreign(event.id)), "mono wide"],
    ["Partitions", (event) => foreign((event.partitions || []).join(", "))],
    ["By", (event) => foreign(event.by?.client_id)],
    ["Size", (event) => bytes(event.bytes), "number"],
    ["", (event) => expander(event)],
  ], list, () => rowBelow(8));
}

function expander(event) {
  const toggle = button("Open", () => {
    const below = toggle.closest("tr").nextElementSibling;
    below.hidden = !below.hidden;
    toggle.setAttribute("aria-expanded", String(!below.hidden));
    fill(toggle, below.hidden ? "Open" : "Close");
    if (!below.firstChild.hasChildNodes()) fill(below.firstChild, contentOf(event));
  }, { class: "quiet", "aria-expanded": "false", "aria-label": `Content of position ${event.position}` });
  return toggle;
}

const contentOf = (event) => (event.pruned ? h("p", { class: "muted" }, "The content was pruned by retention. Id, partitions and time stay.") : [
  json(event.content),
  button("Copy JSON", () => copy(JSON.stringify(event.content, null, 2), "The JSON is copied."), { class: "quiet" }),
]);

async function one(contract, scope, id, signal) {
  const path = at`/v1/ledgers/${contract}/${scope}/event`;
  const { event, deliveries } = await get(path, { id }, signal);
  const sent = h("div", {});
  // After a retry it takes a moment until the target has answered.
  const again = async () => {
    for (const pause of [500, 2000, 5000]) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (signal.aborted) return;
      await show(sent, async () => deliveriesOf((await get(path, { id }, signal)).deliveries, again));
    }
  };
  show(sent, async () => deliveriesOf(deliveries, again));
  return [
    panel(["Event ", foreign(event.id)],
      h("p", { class: "summary" }, "position ", h("b", {}, number(event.position)), " · ", event.pruned ? tag("pruned", "warning") : foreign(event.type), " · committed ", when(event.committed_ms), " by ", foreign(event.by?.client_id), " · ", bytes(event.bytes), " · partitions ", foreign((event.partitions || []).join(", ") || "none")),
      contentOf(event),
      h("p", { class: "actions" }, button("Copy as curl", () => copy(curl(path, { id }), "The command is copied. It reads the token from $TOKEN."), { class: "quiet" }),
        h("a", { href: link("events", contract, scope, { after: Math.max(0, event.position - 25) }) }, "Show it among its neighbours"))),
    panel("Which target has it", sent),
  ];
}

const STATES = { delivered: "good", waiting: "plain", not_sent: "plain", pending: "plain", transient: "warning", rejected: "warning", terminal_failed: "bad" };

const FAILED = new Set(["transient", "rejected", "terminal_failed"]);

function deliveriesOf(deliveries, again) {
  if (!deliveries.length) return empty("No target hears of this ledger.");
  return table("Deliveries of this event", [
    ["Target", (one) => h("a", { href: link("targets", one.target_id) }, foreign(one.target_id))],
    ["State", (one) => tag(one.state.replaceAll("_", " "), STATES[one.state] || "plain")],
    ["Attempts", (one) => number(one.attempts), "number"],
    ["First", (one) => when(one.first_ms)], ["Last", (one) => when(one.last_ms)], ["Next", (one) => when(one.next_ms)],
    ["Error", (one) => foreign(one.error), "wide"],
    ["", (one) => (FAILED.has(one.state) ? button("Retry", () => retryOne(one.target_id, one.event_id).then((done) => done && again()), { "aria-label": `Retry at ${one.target_id}` }) : null)],
  ], deliveries);
}

