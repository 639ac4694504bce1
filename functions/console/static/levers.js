// The levers of a target that work on many events: retry by state, and replay of a range.

import { at, post } from "./api.js";
import { h } from "./dom.js";
import { plural } from "./format.js";
import { choice, dialog, field, steer } from "./ui.js";

const moment = () => h("input", { type: "datetime-local", step: 1 });
const ms = (input) => (input.value ? new Date(input.value).getTime() : null);

export async function bulkRetry(id) {
  const status = choice(["terminal_failed", "rejected", "pending", "transient"], "terminal_failed");
  const families = h("input", { placeholder: "build., order." });
  const [since, until] = [moment(), moment()];
  const form = h("div", { class: "stack" }, field("State", status), field("Types that begin with", families, "Separated by commas; none: all."), field("Last tried from", since), field("until", until));
  if (!(await dialog(`Retry many deliveries of ${id}`, form, [["Cancel", null, "quiet"], ["Count them", "yes", "primary"]]))) return;
  const body = { status: status.value };
  const named = families.value.split(",").map((one) => one.trim()).filter(Boolean);
  if (named.length) body.families = named;
  if (ms(since)) body.since_ms = ms(since);
  if (ms(until)) body.until_ms = ms(until);
  const path = at`/v1/targets/${id}/retry`;
  const counted = await each(path, { ...body, dry_run: true }, "matched", "after").catch((problem) => problem);
  if (typeof counted !== "number") return void (await steer({ title: "Retry", verb: "Show why", act: () => Promise.reject(counted), target: id }));
  await steer({
    title: `Retry ${plural(counted, "delivery", "deliveries")}?`, text: counted ? "They become due at once, in the order of their ledgers." : "Nothing matches; nothing will change.", verb: "Retry them", target: id,
    act: async (progress) => `${plural(await each(path, body, "retried", "after", progress), "delivery", "deliveries")} tried again.`,
  });
}

export async function replay(one) {
  const id = one.target_id;
  const contract = choice(["sync", "realtime", "streams", "catalog", "delivery"], one.sources[0]?.contract || "sync");
  const scope = h("input", { required: true, value: /[*]$/.test(one.sources[0]?.scope || "*") ? "" : one.sources[0].scope.replace("/", ":") });
  const [from, to] = [1, 1000].map((value) => h("input", { type: "number", min: 1, value }));
  const form = h("div", { class: "stack" }, field("Contract", contract), field("Ledger", scope), field("From position", from), field("To position", to));
  if (!(await dialog(`Replay a range to ${id}`, form, [["Cancel", null, "quiet"], ["Count them", "yes", "primary"]]))) return;
  const body = { contract: contract.value, scope: scope.value, from_position: Number(from.value), to_position: Number(to.value), until_ms: Date.now() };
  const path = at`/v1/targets/${id}/replay`;
  const counted = await each(path, { ...body, dry_run: true }, "matched", "from_position").catch((problem) => problem);
  if (typeof counted !== "number") return void (await steer({ title: "Replay", verb: "Show why", act: () => Promise.reject(counted), target: id }));
  await steer({
    title: `Replay ${plural(counted, "event")}?`, text: "The target gets them again, under the same ids.", verb: "Replay them", danger: true, target: id,
    act: async (progress) => `${plural(await each(path, body, "replayed", "from_position", progress), "event")} sent again.`,
  });
}

// One request does a bounded amount of work: ask until there is no next.
async function each(path, body, counter, cursor, progress = () => undefined) {
  let [total, next] = [0, null];
  do {
    const answer = await post(path, next === null ? body : { ...body, [cursor]: next });
    total += answer[counter] ?? 0;
    next = answer.next;
    if (next !== null) progress(`${total} so far …`);
  } while (next !== null && next !== undefined);
  return total;
}
