// Tables: the last runs of compaction, what waits, and the quarantine with repair and re-drive.

import { at, get, post } from "./api.js";
import { fill, foreign, h } from "./dom.js";
import { ago, bytes, number, plural, words } from "./format.js";
import { poll } from "./poll.js";
import { button, choice, dialog, empty, facts, field, heading, load, panel, show, steer, table, tag, when } from "./ui.js";

export function tables(content, { signal }) {
  const [now, quarantine, versions] = [0, 0, 0].map(() => h("div", {}));
  const all = choice([["false", "waiting for repair"], ["true", "all, also those driven again"]], "false", { on: { change: () => list() } });
  const list = () => show(quarantine, () => entries(all.value, "", list, signal));
  fill(content, heading("Tables"), now, panel("Quarantine", h("p", { class: "muted" }, "Lines of the archive that could not be put into tables. Nothing after them is pruned until they are."), h("div", { class: "tools" }, field("Show", all)), quarantine), panel("Registry", versions));
  poll(() => load(now, async () => standing(await get("/v1/tables", {}, signal))), { every: 15_000, signal });
  list();
  show(versions, async () => registry(await get("/v1/registry", {}, signal)));
}

function standing(told) {
  const waits = told.waiting;
  return [
    panel("Published", facts([
      ["Edition", told.edition ? number(told.edition) : "none yet"],
      ["Run", foreign(told.run || "–")],
      ["Published", told.published_ms ? [when(told.published_ms), ` (${ago(told.published_ms)})`] : "never"],
      ["Waiting", waits ? (waits.objects ? [tag(plural(waits.objects, "object"), "warning"), ` ${bytes(waits.bytes)}, oldest ${ago(waits.oldest_ms)}${waits.more ? ", and more" : ""}`] : tag("nothing", "good")) : undefined],
      ["In quarantine", told.quarantine ? (told.quarantine.lines || told.quarantine.objects ? tag(`${plural(told.quarantine.lines, "line")}, ${plural(told.quarantine.objects, "object")}`, "bad") : tag("nothing", "good")) : undefined],
      ["Driven again", told.quarantine ? number(told.quarantine.redriven) : undefined],
    ]), waits && waits.objects ? h("p", { class: "muted" }, "Compaction takes them: ", h("code", {}, "make compact"), ", or the Glue job on its schedule.") : null),
    told.tables ? panel("Tables", told.tables.length ? table("Tables", [["Table", (one) => foreign(one.table)], ["Rows", (one) => number(one.rows), "number"], ["Files", (one) => number(one.files), "number"], ["Size", (one) => bytes(one.bytes), "number"]], told.tables) : empty("No tables yet.", "They appear with the first compaction.")) : h("p", { class: "notice" }, "Sizes and counts tell of the whole hub: they need a token of the tenant default that sees every partition."),
    panel("Last runs", told.runs.length ? table("Last runs", [
      ["Edition", (one) => number(one.edition), "number"], ["Run", (one) => foreign(one.run), "mono"], ["Published", (one) => when(one.published_ms)],
      ...["objects", "lines", "new", "duplicates", "quarantined"].map((name) => [words(name)[0].toUpperCase() + name.slice(1), (one) => number(one.counts?.[name]), "number"]),
    ], told.runs) : empty("Compaction has not run yet.", h("code", {}, "make compact"), " runs it.")),
  ];
}

// Which versions of which types the tables take; what has another version goes into quarantine.
function registry({ registry: known, types, versions, policy }) {
  if (!known) return empty("No registry.", "Until there is one, compaction sets every event of the catalog aside. Put one with ", h("code", {}, "millrace registry put"), ".");
  return [
    h("p", { class: "summary" }, h("b", {}, plural(types, "type")), " · ", h("b", {}, plural(versions, "version")), " · what is not listed: ", h("b", {}, words(policy))),
    table("Registry", [
      ["Type", ([name]) => foreign(name)],
      ["Versions", ([, one]) => foreign(Object.keys(one.versions || {}).join(", ") || "none")],
    ], Object.entries(known.types || {})),
  ];
}

async function entries(all, after, again, signal) {
  const page = await get("/v1/quarantine", { all, after, max: 50 }, signal);
  if (!page.entries.length && !page.next) return empty("Nothing is in quarantine.", "Every line of the archive fits the tables.");
  const reasons = [...new Set(page.entries.map((one) => one.reason))];
  const more = h("div", {});
  if (page.next) more.append(button("More", () => show(fill(more), () => entries(all, page.next, again, signal))));
  return [
    page.complete ? null : h("p", { class: "notice warning" }, "Not everything could be looked at: there may be more."),
    h("p", { class: "actions" }, reasons.map((reason) => button(`Re-drive all: ${words(reason)}`, () => redrive({ reason }, `all lines with the reason ${words(reason)}`, again)))),
    table("Quarantine", [
      ["Reason", (one) => tag(words(one.reason), "bad")],
      ["Field", (one) => foreign(one.field)],
      ["Ledger", (one) => foreign(one.contract ? `${one.contract} ${one.scope ?? ""}` : null)],
      ["Position", (one) => number(one.position), "number"],
      ["Type", (one) => foreign(one.event_type)],
      ["Version", (one) => foreign(one.event_version)],
      ["Key", (one) => foreign(one.idempotency_key), "mono wide"],
      ["Size", (one) => bytes(one.bytes), "number"],
      ["", (one) => (one.redriven ? tag("driven again", "good") : h("span", { class: "actions" }, button("Repair …", () => repair(one.id, again), { "aria-label": `Repair ${one.id}` }), button("Re-drive", () => redrive({ ids: [one.id] }, "this line as it is", again), { class: "quiet" })))],
    ], page.entries),
    more,
  ];
}

const redrive = (body, what, again) => steer({
  title: "Drive again?", text: `The archive gets ${what} once more; the next compaction takes it.`, verb: "Drive again",
  act: async (progress) => {
    let [count, answer] = [0, { next: null }];
    do {
      answer = await post("/v1/quarantine/redrive", answer.next ? { ...body, after: answer.next } : body);
      count += Object.keys(answer.redriven).length;
      progress(`${count} so far …`);
    } while (answer.next);
    return `${plural(count, "line")} driven again.`;
  },
}).then((done) => done && again());

async function repair(id, again) {
  const place = h("div", {});
  const text = h("textarea", { rows: 16, class: "mono", spellcheck: "false", "aria-label": "The line as JSON" });
  show(place, async () => {
    const { line, reason, field: name } = await get(at`/v1/quarantine/${id}`);
    text.value = pretty(line);
    return [h("p", {}, "Refused because of ", tag(words(reason), "bad"), name ? [" in ", foreign(name)] : null, ". Correct the line; several lines are a JSON list."), line === null ? h("p", { class: "notice warning" }, "The line cannot be found any more.") : null, text];
  });
  for (;;) {
    const chosen = await dialog("Repair a line", place, [["Cancel", null, "quiet"], ["Go on", "yes", "primary"]], { class: "wide" });
    if (!chosen) return;
    try {
      const lines = [JSON.parse(text.value)].flat();
      const act = async () => (await post(at`/v1/quarantine/${id}/repair`, { lines }), `${plural(lines.length, "line")} put into the archive. The next compaction takes them.`);
      if (await steer({ title: "Repair this line?", text: `The archive gets ${plural(lines.length, "line")} in its place.`, verb: "Repair", act })) await again();
      return;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      place.prepend(h("p", { class: "notice bad", role: "alert" }, "This is not JSON: ", foreign(error.message)));
    }
  }
}

function pretty(line) {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line ?? "";
  }
}
