// Live tail: events as they arrive, with pause and resume, and loud about gaps.

import { at, get } from "./api.js";
import { fill, h } from "./dom.js";
import { number, plural } from "./format.js";
import { follow, pushes } from "./live.js";
import { button, empty, steady, toast } from "./ui.js";

const MOST_ROWS = 300;
const DRAW_EVERY_MS = 150;

export function liveTail({ contract, scope, filters, signal, rows }) {
  const place = h("div", { class: "tail", hidden: true });
  const state = h("span", { class: "live-state", role: "status" });
  const gaps = h("div", { role: "alert" });
  const list = h("div", {});
  const pause = button("Pause", () => setPaused(!paused));
  const oldest = h("input", { type: "checkbox" });
  let head = 0;
  let running = null;
  let paused = false;
  let shown = [];
  let waiting = [];
  let dropped = 0;
  let timer = 0;
  let changed = () => undefined;

  const start = button("Live tail", () => (running ? stop() : begin()), { "aria-pressed": "false" });
  place.append(h("div", { class: "live-bar" }, state, pause, button("Clear", () => (shown = [], dropped = 0, fill(gaps), draw()), { class: "quiet" })), gaps, list);

  function begin() {
    running = new AbortController();
    signal.addEventListener("abort", () => running?.abort());
    place.hidden = false;
    start.setAttribute("aria-pressed", "true");
    fill(start, "Stop live tail");
    changed(true);
    setPaused(false);
    draw();
    listen(running.signal).catch((problem) => fill(state, problem.message));
  }

  // Where the ledger ends is asked if the page beside it has not been drawn yet.
  async function listen(ends) {
    if (!head) head = (await get(at`/v1/ledgers/${contract}/${scope}`, {}, ends)).head;
    const after = oldest.checked ? 0 : head;
    follow({ contract, scope, after, ...filters, fromOldest: oldest.checked, signal: ends }, {
      event: (event) => {
        if (ends.aborted) return;
        (paused ? waiting : shown).unshift(event);
        head = Math.max(head, event.position);
        later();
      },
      gap: (text) => {
        gaps.append(h("p", { class: "notice bad gap" }, h("strong", {}, text)));
        toast(text, "bad");
      },
      state: (name, text) => fill(state, h("span", { class: `dot ${name}`, "aria-hidden": "true" }), `${name} · ${text}`),
    });
  }

  function stop() {
    running.abort();
    running = null;
    place.hidden = true;
    start.setAttribute("aria-pressed", "false");
    fill(start, "Live tail");
    changed(false);
  }

  function setPaused(now) {
    paused = now;
    if (!paused) [shown, waiting] = [[...waiting, ...shown], []];
    later();
  }

  function later() {
    timer ||= setTimeout(draw, DRAW_EVERY_MS);
  }

  function draw() {
    clearTimeout(timer);
    timer = 0;
    fill(pause, paused ? `Resume (${number(waiting.length)} waiting)` : "Pause");
    if (waiting.length > MOST_ROWS) dropped += waiting.splice(MOST_ROWS).length;
    if (paused && list.hasChildNodes()) return;
    if (shown.length > MOST_ROWS) dropped += shown.splice(MOST_ROWS).length;
    const open = new Set([...list.querySelectorAll("[aria-expanded=true]")].map((one) => one.getAttribute("aria-label")));
    steady(list, () => fill(list, dropped ? h("p", { class: "muted" }, `${plural(dropped, "older event")} left the screen; they are in the ledger.`) : null,
      shown.length ? rows(contract, scope, shown) : empty("Nothing has arrived yet.", "New events appear here.")));
    for (const one of list.querySelectorAll("[aria-expanded]")) if (open.has(one.getAttribute("aria-label"))) one.click();
  }

  const fromStart = pushes(contract) && contract === "streams" ? h("label", { class: "check" }, oldest, " from the oldest") : null;
  return {
    place,
    controls: h("span", { class: "live-controls" }, start, fromStart),
    begin: (position) => (head = Math.max(head, position)),
    onChange: (listener) => (changed = listener),
  };
}
