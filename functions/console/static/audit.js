// The audit: what operators did, newest first.

import { get } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { words } from "./format.js";
import { json } from "./json.js";
import { OUTCOMES, button, choice, empty, failed, field, heading, show, table, tag, when } from "./ui.js";

const KNOWN = new Set(["position", "ts_ms", "who", "action", "action_id", "outcome", "code"]);
const SINCE = [["", "any time"], ["3600000", "last hour"], ["86400000", "last day"], ["604800000", "last 7 days"]];

export function audit(content, { query, signal }) {
  const list = h("div", {});
  const action = h("input", { value: query.get("action") || "", placeholder: "target_retry" });
  const client = h("input", { value: query.get("client") || "", placeholder: "ops" });
  const since = choice(SINCE, query.get("since") || "");
  const apply = (event) => {
    event.preventDefault();
    location.hash = link("audit", { action: action.value, client: client.value, since: since.value });
  };
  fill(content, heading("Audit"),
    h("form", { class: "tools", on: { submit: apply } }, field("Action", action), field("Who", client), field("When", since), h("button", {}, "Filter")), list);
  const wanted = { action: query.get("action"), client: query.get("client"), order: "newest", max: 100 };
  if (query.get("since")) wanted.since_ms = Date.now() - Number(query.get("since"));
  show(list, () => page(list, wanted, signal));
}

// Newest first, so an action's outcome comes before the entry that it was begun. That one is shown only if no outcome
// is known: then the hub died in between.
async function page(list, wanted, signal, ended = new Set()) {
  const found = await get("/v1/audit", wanted, signal);
  const more = found.next_before
    ? button("Older", () => page(list, { ...wanted, before: found.next_before }, signal, ended).then((next) => list.append(...next.filter(Boolean)), (problem) => fill(list, failed(problem))))
    : null;
  if (more) more.addEventListener("click", () => more.remove());
  for (const { outcome, action_id: id } of found.events) if (outcome !== "begun") ended.add(id);
  const shown = found.events.filter((entry) => entry.outcome !== "begun" || !ended.has(entry.action_id));
  if (!shown.length) return [wanted.before ? h("p", { class: "muted" }, "Nothing more here.") : empty("No entries.", "What operators change is recorded here, before it is done and with its outcome."), more];
  return [table("Audit entries", [
    ["#", (entry) => entry.position, "number"],
    ["When", (entry) => when(entry.ts_ms)],
    ["Who", (entry) => foreign(entry.who)],
    ["What", (entry) => h("strong", {}, foreign(words(entry.action)))],
    ["Outcome", (entry) => [outcome(entry), " ", entry.code && foreign(entry.code)]],
    ["About", (entry) => about(entry), "wide"],
  ], shown), more];
}

function outcome({ outcome: name }) {
  if (!name) return "–";
  return name === "begun" ? tag("begun, no outcome known", "warning") : tag(name, OUTCOMES[name] || "plain");
}

function about(entry) {
  const rest = Object.entries(entry).filter(([name]) => !KNOWN.has(name));
  const isShort = (value) => value === null || typeof value !== "object";
  const more = Object.fromEntries(rest.filter(([, value]) => !isShort(value)));
  return [
    rest.filter(([, value]) => isShort(value)).map(([name, value]) => h("span", { class: "pair-inline" }, h("span", { class: "muted" }, words(name)), foreign(value))),
    Object.keys(more).length ? json(more, { closed: true }) : null,
  ];
}
