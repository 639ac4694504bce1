// The overview: the pipeline with its lag, the last hour, and what is wrong with what helps.

import { at, get } from "./api.js";
import { lagLines, pipeline, sparkline } from "./chart.js";
import { fill, foreign, h, link } from "./dom.js";
import { ago, bytes, number, plural, time } from "./format.js";
import { resume, retryAll } from "./levers.js";
import { poll } from "./poll.js";
import { button, copy, empty, failed, heading, load, panel, table, tag } from "./ui.js";

const BAD_SECONDS = 300;

export function overview(content, { signal }) {
  const fresh = h("span", { class: "muted", id: "fresh" });
  const main = h("div", {});
  const connections = h("div", {});
  fill(content, heading("Overview", fresh), main, connections);
  let counted = "";
  const look = async () => {
    let connected = "";
    await load(main, async () => {
      const now = await get("/v1/overview", {}, signal);
      connected = `${now.connections} ${now.subscriptions}`;
      return picture(now, await tablesOf(signal), look);
    });
    fill(fresh, `as of ${time(Date.now())}`);
    if (connected === counted) return;
    await load(connections, async () => panel("Open connections", await listed(connections, "", signal)));
    counted = connected;
  };
  poll(look, { every: 10_000, signal });
}

// Tells of the whole hub, so not every token sees it.
const tablesOf = (signal) => get("/v1/tables", {}, signal).catch(() => null);

function picture(now, tables, again) {
  const minutes = lastHour(now.events_per_minute.minutes);
  const total = sum(minutes);
  return [
    now.more && h("p", { class: "notice" }, `Only ${plural(now.looked_at, "ledger")} were looked at: these numbers are lower bounds.`),
    h("div", { class: "two" },
      h("div", {}, panel("Pipeline", pipeline(stages(now, tables, total))), panel("What needs attention", problems(now.problems, again))),
      h("div", {},
        panel("Last hour", h("p", { class: "big" }, number(total), h("span", {}, now.events_per_minute.truncated ? " events or more" : " events")), sparkline(minutes, `Events per minute in the last hour: ${total} in all.`), h("p", { class: "axis" }, h("span", {}, "60 min ago"), h("span", {}, `peak ${number(Math.max(...minutes))} / min`), h("span", {}, "now")), contracts(now.events_per_minute.by_contract || {})),
        panel("Now", tiles(now)))),
  ];
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

// One small line for each contract that had an event.
function contracts(counted) {
  const lines = Object.entries(counted).map(([contract, minutes]) => [contract, lastHour(minutes)]);
  return h("ul", { class: "contracts" }, lines.map(([contract, minutes]) =>
    h("li", {}, h("a", { href: link("events", { contract }) }, contract), sparkline(minutes, `${contract}: events per minute in the last hour, ${sum(minutes)} in all.`), h("span", { class: "number" }, number(sum(minutes))))));
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
    if (stage) shown[name] = { state: state(stage), lines: lagLines(stage) };
  }
  const { well, paused, blocked } = now.targets;
  if (!well && !paused && !blocked) shown.targets = { state: "plain", lines: ["none"] };
  else if (blocked || paused) shown.targets = { state: blocked ? "bad" : "warning", lines: [`${well} well, ${paused} paused`, `${blocked} blocked`, now.stages.targets.lag_events ? `${number(now.stages.targets.lag_events)} events behind` : null] };
  shown.tables = lake(tables);
  return shown;
}

function lake(tables) {
  if (!tables) return { state: "plain", lines: ["not known"] };
  const edition = tables.edition ? `edition ${tables.edition}` : "no edition yet";
  if (!tables.waiting) return { state: "plain", lines: [edition] };
  const { objects, bytes: size, oldest_ms: oldest } = tables.waiting;
  const bad = tables.quarantine?.lines || tables.quarantine?.objects;
  const quarantined = bad ? `${number(bad)} in quarantine` : null;
  return objects
    ? { state: "warning", lines: [plural(objects, "object waits", "objects wait"), quarantined || bytes(size), `oldest ${ago(oldest)}`] }
    : { state: bad ? "warning" : "good", lines: [edition, "up to date", quarantined] };
}

function state({ lag_events: events, worst_lag_seconds: seconds, gaps }) {
  if (gaps) return "bad";
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

function problems(list, again) {
  if (!list.length) return empty("Nothing is wrong.", "Every stage keeps up, and no target is paused or blocked.");
  return h("ul", { class: "problems" }, list.map((problem) =>
    h("li", {}, tag(problem.severity, problem.severity === "error" ? "bad" : "warning"),
      h("div", {}, h("p", {}, foreign(problem.what)),
        h("p", { class: "actions" }, lever(problem, again), whereTo(problem.where)),
        h("p", { class: "muted command" }, "In a terminal: ", h("code", {}, foreign(problem.help)), " ", button("Copy", () => copy(problem.help, "The command is copied."), { class: "quiet", "aria-label": `Copy ${problem.help}` }))))));
}

// What the command of a problem does, as a button: to let a target go on, and to retry what was given up.
function lever({ where, help }, again) {
  const id = /^targets\/(.+)$/.exec(where || "")?.[1];
  if (!id) return null;
  if (help.startsWith("millrace targets resume ")) return button("Resume …", () => resume(id).then((done) => done && again()), { "aria-label": `Resume ${id}` });
  if (help.startsWith("millrace targets retry ")) return button("Retry them …", () => retryAll(id).then((done) => done && again()), { "aria-label": `Retry what ${id} did not take` });
  return null;
}

function whereTo(where) {
  const [contract, ...scope] = String(where || "").split("/");
  if (!scope.length) return null;
  const href = contract === "targets" ? link("targets", scope.join("/")) : link("events", contract, scope.join("/"));
  return h("a", { href }, contract === "targets" ? "See the target" : "See the ledger");
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
    page.next && button("More", () => listed(place, page.next, signal).then((more) => fill(place, panel("Open connections", more)), (problem) => fill(place, failed(problem)))),
  ];
}

