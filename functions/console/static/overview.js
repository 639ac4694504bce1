// The overview: the pipeline with its lag, the last hour, and what is wrong with what helps.

import { at, get } from "./api.js";
import { lagText, pipeline, sparkline } from "./chart.js";
import { fill, foreign, h, link } from "./dom.js";
import { bytes, number, plural } from "./format.js";
import { poll } from "./poll.js";
import { button, empty, failed, heading, load, panel, show, table, tag } from "./ui.js";

const BAD_SECONDS = 300;

export function overview(content, { signal }) {
  const fresh = h("span", { class: "muted", id: "fresh" });
  const main = h("div", {});
  const connections = h("div", {});
  fill(content, heading("Overview", fresh), main, panel("Open connections", connections));
  poll(async () => {
    await load(main, async () => picture(await get("/v1/overview", {}, signal), await tablesOf(signal)));
    fill(fresh, `as of ${new Date().toLocaleTimeString("en-GB")}`);
  }, { every: 10_000, signal });
  show(connections, () => listed(connections, "", signal));
}

// Tells of the whole hub, so not every token sees it.
const tablesOf = (signal) => get("/v1/tables", {}, signal).catch(() => null);

function picture(now, tables) {
  const minutes = lastHour(now.events_per_minute.minutes);
  const total = minutes.reduce((sum, value) => sum + value, 0);
  return [
    now.more && h("p", { class: "notice" }, `Only ${plural(now.looked_at, "ledger")} were looked at: these numbers are lower bounds.`),
    h("div", { class: "two" },
      panel("Pipeline", pipeline(stages(now, tables, total))),
      h("div", {},
        panel("Last hour", h("p", { class: "big" }, number(total), h("span", {}, now.events_per_minute.truncated ? " events or more" : " events")), sparkline(minutes, `Events per minute in the last hour: ${total} in all.`), h("p", { class: "axis" }, h("span", {}, "60 min ago"), h("span", {}, `peak ${number(Math.max(...minutes))} / min`), h("span", {}, "now"))),
        panel("Now", tiles(now)))),
    panel("What needs attention", problems(now.problems)),
  ];
}

function lastHour(minutes) {
  const newest = Math.floor(Date.now() / 60_000);
  const counted = new Map(minutes.map(({ minute_ms: ms, events }) => [Math.floor(ms / 60_000), events]));
  return Array.from({ length: 60 }, (_, index) => counted.get(newest - 59 + index) || 0);
}

function stages(now, tables, total) {
  const shown = { commit: { state: "good", lines: [`${number(total)} in the last hour`, plural(now.looked_at, "ledger")] } };
  for (const name of ["fan_out", "index", "archive", "targets"]) {
    const stage = now.stages[name];
    if (stage) shown[name] = { state: state(stage), lines: lagText(stage) };
  }
  const { well, paused, blocked } = now.targets;
  if (blocked || paused) shown.targets = { state: blocked ? "bad" : "warning", lines: [`${well} well, ${paused} paused`, `${blocked} blocked`] };
  const waiting = tables?.waiting;
  if (waiting) shown.tables = { state: waiting.objects ? "warning" : "good", lines: [waiting.objects ? `${number(waiting.objects)} objects wait` : "up to date", waiting.objects ? bytes(waiting.bytes) : null] };
  else shown.tables = { state: "plain", lines: tables ? [`edition ${tables.edition}`] : ["not known"] };
  return shown;
}

function state({ lag_events: events, worst_lag_seconds: seconds }) {
  if (!events || seconds < 30) return "good";
  return seconds < BAD_SECONDS ? "warning" : "bad";
}

function tiles(now) {
  const tile = (name, value, kind, href) => h("div", { class: `tile ${kind || ""}` }, h("dt", {}, href ? h("a", { href }, name) : name), h("dd", {}, number(value)));
  const { well, paused, blocked } = now.targets;
  return h("dl", { class: "tiles" },
    tile("Targets well", well, "", link("targets")), tile("Paused", paused, paused ? "warning" : "", link("targets")), tile("Blocked", blocked, blocked ? "bad" : "", link("targets")),
    tile("Connections", now.connections), tile("Subscriptions", now.subscriptions), tile("Degraded", now.degraded, now.degraded ? "warning" : "", link("streams")));
}

function problems(list) {
  if (!list.length) return empty("Nothing is wrong.", "Every stage keeps up, and no target is paused or blocked.");
  return h("ul", { class: "problems" }, list.map((problem) =>
    h("li", {}, tag(problem.severity, problem.severity === "error" ? "bad" : "warning"),
      h("div", {}, h("p", {}, foreign(problem.what)), h("p", { class: "muted" }, "Helps: ", h("code", {}, foreign(problem.help)), " ", whereTo(problem.where))))));
}

function whereTo(where) {
  const [contract, ...scope] = String(where || "").split("/");
  if (!scope.length) return null;
  const href = contract === "targets" || contract === "target" ? link("targets", scope.join("/")) : link("events", contract, scope.join("/"));
  return h("a", { href }, "Look at it");
}

async function listed(place, after, signal) {
  const page = await get(at`/v1/connections`, { after, max: 50 }, signal);
  if (!page.connections.length && !after) return empty("Nobody is connected.");
  return [
    table("Open connections", [
      ["Client", (one) => foreign(one.client_id)],
      ["Project", (one) => foreign(one.project)],
      ["Listens to", (one) => one.subscriptions.map((sub, index) => [index ? ", " : "", foreign(`${sub.contract} ${sub.scope}`)])],
      ["Connection", (one) => foreign(one.connection), "mono muted"],
    ], page.connections),
    page.next && button("More", () => listed(place, page.next, signal).then((more) => fill(place, more), (problem) => fill(place, failed(problem)))),
  ];
}

