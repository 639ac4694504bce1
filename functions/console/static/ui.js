// What screens are made of: states, tables, tags, dialogs and messages.

import { Problem, get, session } from "./api.js";
import { fill, foreign, h } from "./dom.js";
import { clock, words } from "./format.js";

export const tag = (text, kind = "plain") => h("span", { class: `tag ${kind}` }, text);

export const heading = (title, ...beside) =>
  h("header", { class: "title" }, h("h1", { tabindex: -1 }, title), h("div", { class: "beside" }, beside));

export const panel = (title, ...content) =>
  h("section", { class: "panel" }, title && h("h2", {}, title), content);

export const button = (text, click, attrs = {}) => h("button", { type: "button", ...attrs, on: { click } }, text);

// In the time of this machine; the exact moment in UTC is in its title.
export function when(ms) {
  if (ms === null || ms === undefined) return "–";
  const utc = new Date(ms).toISOString();
  return h("time", { datetime: utc, title: utc }, clock(ms));
}

// A labelled control.
export function field(label, control, hint) {
  return h("label", { class: "field" }, h("span", {}, label), control, hint && h("small", {}, hint));
}

export function choice(options, chosen, attrs = {}) {
  const made = options.map((option) => (typeof option === "string" ? [option, words(option)] : option));
  return h("select", attrs, made.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== undefined);
  return h("dl", { class: "facts" }, shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// columns: [title, row => child, class]. On a narrow screen each row is a card: then the roles, which the style takes
// from the elements, are still told, and each value has its title beside it.
export function table(label, columns, rows, below) {
  const head = h("tr", { role: "row" }, columns.map(([title, , kind]) => h("th", { scope: "col", role: "columnheader", class: kind?.includes("number") ? "number" : null }, title || h("span", { class: "unseen" }, "Actions"))));
  const lines = rows.flatMap((row) => {
    const line = h("tr", { role: "row" }, columns.map(([title, cell, kind]) => cellOf(title, cell(row), kind)));
    return below ? [line, ...[below(row, line)].flat().filter(Boolean)] : [line];
  });
  return scrolling(label, h("table", { role: "table" }, h("caption", { class: "unseen" }, label), h("thead", { role: "rowgroup" }, head), h("tbody", { role: "rowgroup" }, lines)));
}

function cellOf(title, content, kind) {
  const cell = h("td", { role: "cell", class: kind, "data-title": title || null }, content);
  if (["", "–"].includes(cell.textContent)) cell.classList.add("nothing");
  return cell;
}

// A row that opens below the one before it.
export const rowBelow = (columns) => h("tr", { class: "below", role: "row", hidden: true }, h("td", { role: "cell", colspan: columns }));

export const scrolling = (label, content) =>
  h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, content);

export const loading = (text = "Loading …") =>
  h("div", { class: "state loading", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), text);

export const empty = (title, ...more) =>
  h("div", { class: "state empty" }, h("strong", {}, title), more.length ? h("p", {}, more) : null);

export function failed(problem, again) {
  if (problem.status === 403) return forbidden(problem);
  if (problem.absent) {
    return empty("This hub does not offer this yet.", "It is answered by a newer version of Millrace.");
  }
  const code = [problem.status || null, problem.code].filter(Boolean).join(" ");
  return h(
    "div",
    { class: "state error", role: "alert" },
    h("strong", {}, summary(problem)),
    h("p", {}, foreign(problem.message || String(problem)), code && h("span", { class: "muted" }, ` (${code})`)),
    again && problem.status !== 404 && button("Try again", again),
  );
}

function summary({ status }) {
  if (!status) return "No answer.";
  if (status === 404) return "Not found.";
  if (status === 429) return "Too many requests just now.";
  return status >= 500 ? "The hub could not do this." : "The hub refused this.";
}

export function forbidden(problem, role = "operator") {
  const { client_id: client = "unknown", roles = [] } = session.claims;
  return h(
    "div",
    { class: "state forbidden", role: "alert" },
    h("strong", {}, `This needs a token with the role ${role}.`),
    h("p", {}, foreign(problem.message)),
    h("p", { class: "muted" }, "The present token is of client ", foreign(client), " with the roles ",
      foreign([roles].flat().join(", ") || "none"), "."),
    h("p", { class: "muted" }, "Make one with: ", h("code", {}, `millrace token --role ${role} --partition '*' --project …`)),
  );
}

// Shows `loading`, then what `work` makes; or why not. Later calls replace the content without a flash.
export async function load(place, work, role) {
  if (!place.hasChildNodes()) fill(place, loading());
  try {
    refresh(place, await work());
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    fill(place, error.status === 403 ? forbidden(error, role) : failed(error, () => load(fill(place), work, role)));
    throw error;
  }
}

const drawn = new WeakMap();

// Draws only what is new, and not under the hand of somebody who marks text. Focus and scrolling stay where they are.
function refresh(place, content) {
  const fresh = fill(h("div"), content);
  const last = drawn.get(place);
  if (last && last.first === place.firstChild && last.copy.isEqualNode(fresh)) return;
  if (last && marking(place)) return;
  const copy = fresh.cloneNode(true);
  steady(place, () => place.replaceChildren(...fresh.childNodes));
  drawn.set(place, { copy, first: place.firstChild });
}

function marking(place) {
  const marked = getSelection();
  return marked && !marked.isCollapsed && place.contains(marked.anchorNode);
}

// Changes what is drawn; focus and scrolling stay where they are, if what they were at is there again.
export function steady(place, change) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && nameOf(focused);
  const scrolled = [...place.querySelectorAll(".scroll")].map((one) => [nameOf(one), one.scrollLeft]);
  change();
  for (const one of place.querySelectorAll(".scroll")) {
    const found = scrolled.find(([named]) => named === nameOf(one));
    if (found) [, one.scrollLeft] = found;
  }
  if (focused) [...place.querySelectorAll(focused.localName)].find((one) => nameOf(one) === name)?.focus({ preventScroll: true });
}

const nameOf = (one) => `${one.getAttribute("aria-label")} ${one.getAttribute("href")} ${one.textContent.length < 100 ? one.textContent : ""}`;

// The same where nobody waits for it: what went wrong is on the screen already.
export const show = (place, work, role) =>
  load(place, work, role).catch((error) => {
    if (!(error instanceof Problem)) throw error;
  });

export function toast(text, kind = "plain") {
  const message = h("p", { class: `toast ${kind}` }, text);
  const status = document.getElementById("status");
  status.append(message);
  setTimeout(() => message.remove(), 6000);
}

export async function copy(text, what = "Copied.") {
  try {
    await navigator.clipboard.writeText(text);
    toast(what);
  } catch {
    dialog("Copy this", h("textarea", { readonly: true, rows: 8, "aria-label": "text to copy", value: text }), []);
  }
}

// Resolves with the value of the button that closed it, or null.
export function dialog(title, content, buttons, attrs = {}) {
  return new Promise((resolve) => {
    const close = (value) => {
      resolve(value);
      box.close();
    };
    const shown = buttons.length ? buttons : [["Close", null]];
    const box = h(
      "dialog",
      { "aria-label": title, ...attrs, on: { close: () => (resolve(null), box.remove()) } },
      h("h2", {}, title),
      h("div", { class: "body" }, content),
      h("footer", {}, shown.map(([text, value, kind]) => button(text, () => close(value), { class: kind }))),
    );
    document.body.append(box);
    box.showModal();
  });
}

// Asks, acts, and shows what came of it together with its entry in the audit.
export async function steer({ title, text, content, verb, danger, act, target }) {
  const asked = [text && h("p", {}, text), content];
  const sure = await dialog(title, asked, [["Cancel", null, "quiet"], [verb, "yes", danger ? "danger" : "primary"]]);
  if (!sure) return false;
  const body = h("div", {}, loading("Working …"));
  const closed = dialog(title, body, []);
  try {
    const told = await act((progress) => fill(body, loading(progress)));
    fill(body, h("p", { class: "good" }, told || "Done."), await recorded(target));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    fill(body, failed(error), await recorded(target));
  }
  await closed;
  return true;
}

async function recorded(target) {
  try {
    const { events } = await get("/v1/audit", { order: "newest", client: session.claims.client_id, max: 20 });
    const entry = events.find((one) => one.outcome !== "begun" && (!target || one.target_id === target));
    return entry ? h("div", { class: "audited" }, h("h3", {}, "In the audit"), auditEntry(entry)) : null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return h("p", { class: "muted" }, "The audit could not be read: ", foreign(error.message));
  }
}

export const OUTCOMES = { done: "good", refused: "warning", failed: "bad", begun: "plain" };

export const auditEntry = (entry) =>
  h("p", { class: "entry" }, h("span", { class: "number" }, `#${entry.position}`), " ", when(entry.ts_ms), " ",
    foreign(entry.who), " ", h("strong", {}, words(entry.action)), " ",
    entry.outcome && tag(entry.outcome, OUTCOMES[entry.outcome] || "plain"), " ", entry.code && foreign(entry.code));
