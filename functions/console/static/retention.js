// Retention: the policies, what each ledger would let go now, and who holds it back.

import { at, get } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { bytes, number } from "./format.js";
import { button, choice, empty, facts, field, heading, panel, show, table, tag } from "./ui.js";

const CONTRACTS = ["sync", "realtime", "streams", "catalog", "delivery"];

export function retention(content, { parts: [contract, scope], query, signal }) {
  const policies = h("div", {});
  const plan = h("div", {});
  const kind = choice(CONTRACTS, contract || "sync");
  const name = h("input", { value: scope || "", required: true, placeholder: "project, session, runtime:stream …" });
  const look = (event) => {
    event.preventDefault();
    location.hash = link("retention", kind.value, name.value);
  };
  fill(content, heading("Retention"), panel("Policies", policies),
    panel("What would go now", h("form", { class: "tools", on: { submit: look } }, field("Contract", kind), field("Ledger", name), h("button", {}, "Dry run")), plan));
  show(policies, () => listed(query.get("after") || "", signal));
  if (contract && scope) show(plan, async () => drawn(await get(at`/v1/retention/${contract}/${scope}/plan`, {}, signal)));
  else fill(plan, empty("Choose a ledger.", "A dry run changes nothing."));
}

async function listed(after, signal) {
  const page = await get("/v1/retention", { after, max: 100 }, signal);
  if (!page.policies.length && !page.next_after) return empty("No policy.", "Without one, nothing is ever pruned.");
  const more = h("div", {});
  if (page.next_after) more.append(button("More", () => show(fill(more), () => listed(page.next_after, signal))));
  const planOf = (one) => (one.scope.endsWith("*") ? null : h("a", { href: link("retention", one.contract, one.scope) }, "Dry run"));
  return h("div", {}, table("Policies", [
    ["Contract", (one) => one.contract], ["Scope", (one) => foreign(one.scope)], ["Partition", (one) => (one.partition === null ? h("span", { class: "muted" }, "whole scope") : foreign(one.partition))],
    ["Watermark", (one) => number(one.advance_to), "number"], ["Days", (one) => (one.max_age_days === null ? "–" : number(one.max_age_days)), "number"], ["Newest events", (one) => (one.max_events === null ? "–" : number(one.max_events)), "number"],
    ["", planOf],
  ], page.policies), more);
}

function drawn(plan) {
  const isHeld = plan.held_by in plan.holders;
  const allows = plan.watermark >= plan.floor || Object.keys(plan.partition_watermarks).length > 0;
  const holders = Object.entries(plan.holders).sort(([, one], [, other]) => one - other);
  return [
    plan.complete ? null : h("p", { class: "notice warning" }, "Not everything was read: at least this much would go."),
    facts([
      ["Ledger", h("a", { href: link("events", plan.contract, plan.scope) }, foreign(`${plan.contract} ${plan.scope}`))],
      ["Retained", `${number(plan.floor)} to ${number(plan.head)}`],
      ["Would go", plan.events ? tag(`${number(plan.events)} events, ${bytes(plan.bytes)}`, "warning") : tag("nothing", "good")],
      ["Policies allow up to", number(plan.watermark)],
      ["Kept for a partition", number(plan.kept_for_a_partition)],
      ["Positions that go", foreign(plan.goes.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(", ") || "none")],
      ["Not asked here", [foreign(plan.not_asked.join(", ") || "nobody"), plan.not_asked.length ? h("small", {}, " A run of retention waits for it too.") : null]],
    ]),
    h("h3", {}, "What holds it back, and at which position"),
    h("p", { class: isHeld ? "notice warning" : "notice" }, isHeld ? [holder(plan.held_by), ` holds it back: nothing above position ${number(plan.limit)} may go before it has read it.`] : allows ? "Nobody: every reader is further than the policies let go." : "No policy lets anything of this ledger go now."),
    table("Holders", [
      ["Holder", ([name]) => [holder(name), " ", name === plan.held_by ? tag("the lowest", "warning") : null]],
      ["Lets go up to", ([, position]) => number(position), "number"],
      ["Behind the head", ([, position]) => number(plan.head - position), "number"],
    ], holders),
    isHeld && plan.held_by.startsWith("target:") ? h("p", { class: "muted" }, "Let the target drain, or delete it: ", h("a", { href: link("targets", plan.held_by.slice(7)) }, foreign(plan.held_by.slice(7)))) : null,
  ];
}

const READERS = { archive: "The archive", fan_out: "Fan-out", index: "The index", other_targets: "Targets that this token may not see" };

function holder(name) {
  if (!name.startsWith("target:")) return foreign(READERS[name] || name);
  const id = name.slice("target:".length);
  return ["Target ", h("a", { href: link("targets", id) }, foreign(id))];
}
