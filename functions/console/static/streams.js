// Streams: a runtime's status, its streams and degraded subscriptions, and its markers on a plane.

import { ask, at, get } from "./api.js";
import { plot } from "./chart.js";
import { fill, foreign, h, link } from "./dom.js";
import { ago, number } from "./format.js";
import { lag } from "./events.js";
import { streamScope } from "./live.js";
import { poll } from "./poll.js";
import { button, empty, facts, field, heading, load, panel, show, steer, table, tag, when } from "./ui.js";

const escaped = (name) => name.replaceAll("%", "%25").replaceAll(":", "%3A");

export function streams(content, { parts: [id], query, signal }) {
  if (id) runtime(content, id, signal);
  else choose(content, query, signal);
}

function choose(content, query, signal) {
  const list = h("div", {});
  const prefix = h("input", { value: query.get("prefix") || "", type: "search", placeholder: "beginning of a runtime id" });
  const search = (event) => {
    event.preventDefault();
    location.hash = link("streams", { prefix: prefix.value });
  };
  fill(content, heading("Streams"), h("form", { class: "tools", on: { submit: search } }, field("Runtimes that begin with", prefix), h("button", {}, "Search")), list);
  show(list, () => runtimes(query.get("prefix") || "", "", signal));
}

async function runtimes(prefix, after, signal) {
  const page = await get("/v1/ledgers", { contract: "streams", prefix: escaped(prefix), after, max: 100 }, signal);
  if (!page.ledgers.length && !page.next) return empty("No runtime.", "A runtime appears with the first event of one of its streams.");
  const grouped = Map.groupBy ? Map.groupBy(page.ledgers, (one) => streamScope(one.scope).runtime_id) : grouping(page.ledgers);
  const more = h("div", {});
  if (page.next) more.append(button("More runtimes", () => show(fill(more), () => runtimes(prefix, page.next, signal))));
  return h("div", {}, table("Runtimes", [
    ["Runtime", ([id]) => h("a", { href: link("streams", id) }, foreign(id))],
    ["Streams", ([, list]) => foreign(list.map((one) => streamScope(one.scope).stream_id).join(", "))],
    ["Events", ([, list]) => number(list.reduce((sum, one) => sum + one.events, 0)), "number"],
    ["Last commit", ([, list]) => when(Math.max(...list.map((one) => one.last_commit_ms)))],
  ], [...grouped]), more);
}

function grouping(list) {
  const groups = new Map();
  for (const one of list) {
    const { runtime_id: id } = streamScope(one.scope);
    groups.set(id, [...(groups.get(id) || []), one]);
  }
  return groups;
}

function runtime(content, id, signal) {
  const [status, degraded, list, markers, granted, agreed] = [0, 0, 0, 0, 0, 0].map(() => h("div", {}));
  fill(content, heading(foreign(id), h("a", { href: link("streams") }, "All runtimes")),
    h("div", { class: "two even" }, panel("Status", status), panel("Gaps and degraded subscriptions", degraded)), panel("Streams and cursors", list), panel("Markers", markers), panel("What clients negotiated", agreed), panel("Break-glass grants", granted));
  const grantList = () => load(granted, () => grants(id, signal, grantList));
  poll(() => Promise.all([
    load(list, () => streamsOf(id, signal)),
    load(status, () => standing(id, signal), "consumer"),
    load(degraded, () => held(id, signal)),
    load(markers, () => places(id, signal), "consumer"),
  ]), { every: 10_000, signal });
  grantList().catch(() => undefined);
  show(agreed, () => negotiations(id, signal));
}

async function standing(id, signal) {
  const { streams: all } = await get(at`/v1/runtimes/${id}/status`, {}, signal);
  const known = all.filter((one) => one.stream_id !== "markers");
  if (!known.length) return empty("No status yet.");
  return known.map(({ stream_id: name, projection: seen, complete, from_seq_no: from }) => h("div", { class: "standing" },
    h("h3", {}, foreign(name), complete ? null : tag(`counted from ${from}`, "warning")),
    facts([
      ["State", seen.runtime_state ? [foreign(stateOf(seen.runtime_state)), " "] : "not told"],
      ["Health", seen.health ? counts(seen.health.snapshot) : "not told"],
      ["Interfaces", foreign(Object.entries(seen.interfaces || {}).map(([one, { state }]) => `${one} ${state ?? "–"}`).join(", ") || "none")],
      ["Events", number(seen.events)],
      ["Types", counts(seen.by_type)],
      ["Severities", counts(seen.by_severity)],
      ["Messages", counts(seen.deliveries)],
      ["Last event", seen.last_event ? [foreign(seen.last_event.event_type), seen.last_event.ts_ms ? ` ${ago(seen.last_event.ts_ms)}` : ""] : "–"],
      ["Last error", seen.last_error ? foreign(JSON.stringify(seen.last_error)) : "none"],
    ])));
}

const stateOf = (state) => state.to ?? state.state ?? JSON.stringify(state);
const counts = (named) => foreign(Object.entries(named || {}).map(([name, count]) => `${name} ${count}`).join(", ") || "none");

async function held(id, signal) {
  const { degraded, gaps = [], next } = await get(at`/v1/runtimes/${id}/degraded`, { max: 100 }, signal);
  if (!degraded.length && !gaps.length) return empty("None.", "Every cursor can go on where it is.");
  return [
    gaps.length ? h("ul", { class: "problems" }, gaps.map((gap) => h("li", {}, tag("gap", "bad"), h("div", {}, h("p", {}, foreign(gap.stream_id), `: positions 1 to ${number(gap.floor - 1)} are gone`), h("p", { class: "muted" }, `A cursor below ${number(gap.floor)} meets a gap. The head is ${number(gap.head)}.`))))) : null,
    degraded.length ? table("Degraded subscriptions", [["Stream", (one) => foreign(one.stream_id)], ["Subscription", (one) => foreign(one.subscription), "mono"], ["Floor", (one) => number(one.floor), "number"]], degraded) : null,
    degraded.length ? h("p", { class: "muted" }, "A degraded subscription does not reset by itself: its reader polls again without a cursor.") : null,
    next ? h("p", { class: "muted" }, "There are more than these.") : null,
  ];
}

async function streamsOf(id, signal) {
  const page = await get("/v1/ledgers", { contract: "streams", prefix: `${escaped(id)}:`, max: 100 }, signal);
  if (!page.ledgers.length) return empty("This runtime has no streams.");
  return [
    table("Streams of this runtime", [
      ["Stream", (one) => h("a", { href: link("events", "streams", one.scope) }, foreign(streamScope(one.scope).stream_id))],
      ["Head", (one) => number(one.head), "number"],
      ["Floor", (one) => [number(one.floor), " ", one.floor > 1 ? tag("gap", "warning") : null], "number"],
      ["Last commit", (one) => when(one.last_commit_ms)],
      ["Fan-out is at", (one) => cursor(one.stages.fan_out)], ["Archive is at", (one) => cursor(one.stages.archive)],
      ["Targets are at", (one) => (one.targets.length ? one.targets.map((target) => h("span", { class: "pair-inline" }, h("a", { href: link("targets", target.target_id) }, foreign(target.target_id)), " ", cursor(target))) : "–")],
    ], page.ledgers),
    h("p", { class: "muted" }, "Who polls keeps its own cursor; the hub knows it when it meets a gap, and lists it above as degraded."),
  ];
}

const cursor = (reader) => (reader ? h("span", { class: "pair-inline" }, number(reader.position), " ", lag(reader)) : "–");

async function negotiations(id, signal) {
  const { negotiations: all, next } = await get(at`/v1/runtimes/${id}/negotiations`, { max: 100 }, signal);
  if (!all.length) return empty("Nobody has negotiated with this runtime.");
  return [
    table("Negotiations", [
      ["Client", (one) => foreign(one.client_id)],
      ["Profile", (one) => foreign(one.profile)],
      ["Version", (one) => foreign(one.active_contract_version), "number"],
      ["Capabilities", (one) => foreign(one.effective_capabilities.join(", ") || "none"), "wide"],
      ["Limits", (one) => counts(one.effective_limits), "wide"],
    ], all),
    next ? h("p", { class: "muted" }, "The first 100 clients by name.") : null,
  ];
}

// Who may look at raw sensitive values of this runtime, and why. The values themselves are not for a screen.
async function grants(id, signal, again) {
  const { grants: all } = await get(at`/v1/runtimes/${id}/diagnostics/grants`, {}, signal);
  if (!all.length) return empty("No grants.", "Nobody was ever allowed to look at raw values of this runtime.");
  const end = (one) => steer({
    title: "End this grant?", text: ["What was kept under the grant of ", foreign(one.who), " can never be read again."], verb: "End it", danger: true,
    act: async () => (await ask("DELETE", at`/v1/runtimes/${id}/diagnostics/grants`, { query: { grant_id: one.grant_id } }), "The grant has ended."),
  }).then((done) => done && again());
  return table("Grants", [
    ["State", (one) => tag(one.status, one.status === "active" ? "warning" : "plain")],
    ["Who", (one) => foreign(one.who)],
    ["Why", (one) => foreign(one.reason), "wide"],
    ["Streams", (one) => foreign(one.scope.streams?.join(", ") || "all")],
    ["Fields", (one) => foreign(one.scope.fields?.join(", ") || "all")],
    ["Ends", (one) => when(one.expires_ts_ms)],
    ["", (one) => (one.status === "active" ? button("End …", () => end(one), { "aria-label": `End the grant of ${one.who}` }) : null)],
  ], all);
}

async function places(id, signal) {
  const { markers, next_cursor: next } = await get(at`/v1/runtimes/${id}/markers`, { max: 200 }, signal);
  if (!markers.length) return empty("No markers.", "Places that clients of this runtime share appear here.");
  const history = await trails(id, signal);
  const drawn = markers.map((one) => ({ id: one.marker_id, label: one.label, revision: one.revision, trail: [...(history.get(one.marker_id) || []).filter((past) => past.revision < one.revision), { ...one.position, revision: one.revision }] }));
  return [
    plot(drawn),
    table("Markers", [
      ["Marker", (one) => foreign(one.label)], ["Id", (one) => foreign(one.marker_id), "mono"], ["Topic", (one) => foreign(one.topic_id)],
      ["Latitude", (one) => one.position.lat, "number"], ["Longitude", (one) => one.position.lon, "number"],
      ["Revision", (one) => number(one.revision), "number"], ["Changed", (one) => when(one.updated_ts_ms)],
    ], markers),
    next ? h("p", { class: "muted" }, "The first 200 markers by id.") : null,
  ];
}

// Where markers were, from the events of the stream `markers`.
async function trails(id, signal) {
  const found = new Map();
  const path = at`/v1/ledgers/streams/${`${escaped(id)}:markers`}/events`;
  const { head } = await get(at`/v1/ledgers/streams/${`${escaped(id)}:markers`}`, {}, signal).catch(() => ({ head: 0 }));
  if (!head) return found;
  const { events } = await get(path, { after: Math.max(0, head - 500), max: 500 }, signal);
  for (const { content } of events) {
    const { marker_id: marker, position, revision } = content?.payload?.marker || content?.payload || {};
    if (marker && position) found.set(marker, [...(found.get(marker) || []), { ...position, revision }]);
  }
  return found;
}
