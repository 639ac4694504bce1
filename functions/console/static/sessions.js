// Sessions: what was said, beside what happened.

import { at, get } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { time } from "./format.js";
import { ledgers } from "./events.js";
import { follow } from "./live.js";
import { json } from "./json.js";
import { button, empty, field, heading, panel, show, tag } from "./ui.js";

const MOST = 500;

export function sessions(content, { parts: [id], query, signal }) {
  if (id) session(content, id, signal);
  else choose(content, query, signal);
}

function choose(content, query, signal) {
  const list = h("div", {});
  const prefix = h("input", { value: query.get("prefix") || "", type: "search", placeholder: "beginning of a session id" });
  const search = (event) => {
    event.preventDefault();
    location.hash = link("sessions", { prefix: prefix.value });
  };
  fill(content, heading("Sessions"), h("form", { class: "tools", on: { submit: search } }, field("Sessions that begin with", prefix), h("button", {}, "Search")), list);
  show(list, () => ledgers("realtime", query.get("prefix") || "", "", signal, (one) => link("sessions", one.scope)));
}

function session(content, id, signal) {
  const transcript = h("div", {});
  const timeline = h("div", {});
  const state = h("span", { class: "live-state", role: "status" });
  fill(content, heading(foreign(id), state, h("a", { href: link("events", "realtime", id) }, "Events"), h("a", { href: link("sessions") }, "All sessions")),
    h("div", { class: "two even" }, panel("Transcript", transcript), panel("Timeline", timeline)));
  let pages = 1;
  const more = () => (pages += 1, draw());
  const draw = () => Promise.all([
    show(transcript, () => said(id, signal, pages, more), "consumer"),
    show(timeline, () => happened(id, signal)),
  ]);
  // However quickly a session speaks, and however long it is: drawing takes a quarter of the time at most.
  let timer = 0;
  let took = 0;
  const later = () => (timer ||= setTimeout(async () => {
    const begun = performance.now();
    await draw();
    took = performance.now() - begun;
    timer = 0;
  }, Math.max(300, 3 * took)));
  draw().then(async () => {
    const { head } = await get(at`/v1/ledgers/realtime/${id}`, {}, signal);
    follow({ contract: "realtime", scope: id, after: head, signal }, {
      event: later,
      gap: (text) => content.prepend(h("p", { class: "notice bad gap", role: "alert" }, text)),
      state: (name, text) => fill(state, h("span", { class: `dot ${name}`, "aria-hidden": "true" }), name === "live" ? name : `${name} · ${text}`),
    });
  }).catch(() => undefined);
}

async function said(id, signal, pages, more) {
  const utterances = [];
  let [answer, query] = [null, {}];
  for (let page = 0; page < pages && (page === 0 || answer.hasMore); page += 1) {
    answer = await get(at`/v1/realtime/sessions/${id}/transcript`, query, signal);
    utterances.push(...answer.utterances);
    const last = utterances.at(-1);
    query = { afterStartMs: last?.startMs, afterUtteranceId: last?.utteranceId };
  }
  if (!utterances.length) return empty("Nothing was said yet.", "A transcript is made of the events transcript.partial and transcript.final.");
  return [
    answer.complete ? null : h("p", { class: "notice warning" }, "Events were pruned before their text was kept: this is not all."),
    h("ol", { class: "transcript" }, utterances.map((one) =>
      h("li", { class: one.final ? "" : "partial" },
        h("span", { class: "speaker" }, foreign(one.speaker)),
        h("span", { class: "muted number" }, offset(one.startMs)), one.final ? null : tag("partial", "warning"),
        h("p", {}, foreign(one.text))))),
    answer.hasMore ? button("Go on", more, { "aria-label": "Go on with the transcript" }) : null,
  ];
}

async function happened(id, signal) {
  const path = at`/v1/ledgers/realtime/${id}/events`;
  const { head } = await get(at`/v1/ledgers/realtime/${id}`, {}, signal);
  const after = Math.max(0, head - MOST);
  const page = await get(path, { after, max: MOST }, signal);
  if (!page.events.length) return empty("No events.");
  return [
    after ? h("p", { class: "muted" }, `The last ${MOST} events; the others are `, h("a", { href: link("events", "realtime", id, { after: 0 }) }, "among all events"), ".") : null,
    h("ol", { class: "timeline" }, page.events.map((event) => {
      const details = h("div", {});
      const open = button(event.pruned ? "pruned" : event.type, () => {
        open.setAttribute("aria-expanded", String(!details.hasChildNodes()));
        fill(details, details.hasChildNodes() ? null : json(event.content));
      }, { class: "link", "aria-expanded": "false" });
      return h("li", {}, h("span", { class: "number muted" }, event.position), h("span", { class: "number" }, time(event.committed_ms)), h("div", {}, h("bdi", {}, open), excerpt(event), details));
    })),
  ];
}

function excerpt(event) {
  const text = event.content?.payload?.text;
  return typeof text === "string" ? foreign(text.length > 80 ? `${text.slice(0, 80)}…` : text, { class: "muted excerpt" }) : null;
}

const offset = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor((ms % 60_000) / 1000)).padStart(2, "0")}`;
