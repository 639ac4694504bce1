// The levers of a target. Each says what it will do, asks, acts, and shows its entry in the audit.

import { ask, at, post } from "./api.js";
import { foreign, h } from "./dom.js";
import { plural } from "./format.js";
import { choice, dialog, empty, failed, field, steer } from "./ui.js";

const deliveries = (count) => plural(count, "delivery", "deliveries");
const moment = () => h("input", { type: "datetime-local", step: 1 });
const ms = (input) => (input.value ? new Date(input.value).getTime() : null);

// Each resolves with whether something was done.
export const resume = (id) => one(id, { title: `Resume ${id}?`, text: "It gets everything that it has missed.", verb: "Resume", path: at`/v1/targets/${id}/resume`, told: "The target goes on." });

export const pause = (id) => one(id, { title: `Pause ${id}?`, text: "It gets nothing until it is resumed. Retention keeps what it has not got.", verb: "Pause", danger: true, path: at`/v1/targets/${id}/pause`, told: "The target is paused." });

export const deliverNow = (id) => one(id, { title: `Deliver to ${id} now?`, text: "What is due is tried at once.", verb: "Deliver now", path: at`/v1/targets/${id}/drain`, told: "A drain was asked for." });

export const retryOne = (id, eventId) => one(id, { title: "Try this delivery again?", text: ["Event ", foreign(eventId), " is sent to ", foreign(id), " again."], verb: "Retry", path: at`/v1/targets/${id}/deliveries/${eventId}/retry`, told: "It is due now." });

const one = (target, { path, told, ...asked }) => steer({ ...asked, target, act: async () => (await ask("POST", path), told) });

export async function limitRate({ target_id: id, max_per_second: now }) {
  const most = h("input", { type: "number", min: 0.1, max: 10_000, step: "any", value: now ?? "" });
  const form = field("Events per second, at most", most, "0.1 to 10,000; empty: no limit.");
  if (!(await dialog(`Limit the rate of ${id}`, form, [["Cancel", null, "quiet"], ["Go on", "yes", "primary"]]))) return false;
  const wanted = most.value === "" ? null : Number(most.value);
  return steer({
    title: wanted === null ? `No rate limit for ${id}?` : `At most ${plural(wanted, "event")} per second for ${id}?`, verb: "Set", target: id,
    text: wanted === null ? "It gets events as quickly as it takes them." : "More events than that wait for their turn; none is lost.",
    act: async () => (await ask("PATCH", at`/v1/targets/${id}`, { body: { max_per_second: wanted } }), "The limit is set."),
  });
}

// What was given up, as the overview offers it.
export const retryAll = (id) => retryMatching(id, { status: "terminal_failed" });

export async function retrySome(id) {
  const status = choice(["terminal_failed", "rejected", "pending", "transient"], "terminal_failed");
  const families = h("input", { placeholder: "build., order." });
  const [since, until] = [moment(), moment()];
  const form = h("div", { class: "stack" }, field("State", status), field("Types that begin with", families, "Separated by commas; none: all."), field("Last tried from", since), field("Last tried until", until));
  if (!(await dialog(`Retry many deliveries of ${id}`, form, [["Cancel", null, "quiet"], ["Count them", "yes", "primary"]]))) return false;
  const body = { status: status.value };
  const named = families.value.split(",").map((name) => name.trim()).filter(Boolean);
  if (named.length) body.families = named;
  if (ms(since)) body.since_ms = ms(since);
  if (ms(until)) body.until_ms = ms(until);
  return retryMatching(id, body);
}

async function retryMatching(id, body) {
  const path = at`/v1/targets/${id}/retry`;
  const counted = await count("Retry", () => each(path, { ...body, dry_run: true }, "matched", "after"));
  if (!counted) return false;
  return steer({
    title: `Retry ${deliveries(counted)}?`, text: ["They become due at once at ", foreign(id), ", in the order of their ledgers."], verb: "Retry them", target: id,
    act: async (progress) => `${deliveries(await each(path, body, "retried", "after", progress))} tried again.`,
  });
}

export async function replay({ target_id: id, sources }) {
  const [first] = sources;
  const contract = choice(["sync", "realtime", "streams", "catalog", "delivery"], first?.contract || "sync");
  const scope = h("input", { required: true, value: !first || first.scope.endsWith("*") ? "" : first.scope.replace("/", ":") });
  const [from, to] = [1, 1000].map((value) => h("input", { type: "number", min: 1, value }));
  const form = h("div", { class: "stack" }, field("Contract", contract), field("Ledger", scope), field("From position", from), field("To position", to));
  if (!(await dialog(`Replay a range to ${id}`, form, [["Cancel", null, "quiet"], ["Count them", "yes", "primary"]]))) return false;
  const body = { contract: contract.value, scope: scope.value, from_position: Number(from.value), to_position: Number(to.value), until_ms: Date.now() };
  const path = at`/v1/targets/${id}/replay`;
  const counted = await count("Replay", () => each(path, { ...body, dry_run: true }, "matched", "from_position"));
  if (!counted) return false;
  return steer({
    title: `Replay ${plural(counted, "event")}?`, text: "The target gets them again, under the same ids.", verb: "Replay them", danger: true, target: id,
    act: async (progress) => `${plural(await each(path, body, "replayed", "from_position", progress), "event")} sent again.`,
  });
}

// How many there are; null after saying that there are none, or why it cannot be known.
async function count(title, work) {
  try {
    const found = await work();
    if (found) return found;
    await dialog(title, empty("Nothing matches.", "Nothing was changed."), []);
  } catch (problem) {
    await dialog(title, failed(problem), []);
  }
  return null;
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
