// Shows a JSON value as a tree. What is closed is not drawn, and what is long is drawn in parts.

import { fill, foreign, h } from "./dom.js";
import { number, plural } from "./format.js";
import { button } from "./ui.js";

const PART = 200;
const LONG = 500;
const OPEN_BELOW = 12;
const DEEPEST_OPEN = 6;

export function json(value, { closed = false } = {}) {
  return h("div", { class: "json" }, node(value, closed ? DEEPEST_OPEN : 0));
}

function node(value, depth, name) {
  if (value !== null && typeof value === "object") return branch(value, depth, name);
  if (typeof value === "string") return [name, text(value)];
  return [name, h("span", { class: `value ${value === null ? "null" : typeof value}` }, String(value))];
}

function text(value) {
  const place = h("span", { class: "value string" });
  const draw = (shown) => fill(place, foreign(JSON.stringify(shown)));
  if (value.length <= LONG) return draw(value);
  draw(value.slice(0, LONG));
  const more = button(`… show all ${number(value.length)} characters`, () => draw(value), { class: "link" });
  place.append(more);
  return place;
}

function branch(value, depth, name) {
  const isList = Array.isArray(value);
  const size = isList ? value.length : Object.keys(value).length;
  if (size === 0) return [name, h("span", { class: "value muted" }, isList ? "[ ]" : "{ }")];
  const summary = isList ? plural(size, "entry", "entries") : plural(size, "key");
  const content = h("div", { class: "branch" });
  const open = size <= OPEN_BELOW && depth < DEEPEST_OPEN;
  const draw = () => content.hasChildNodes() || grow(content, isList ? value.keys() : Object.keys(value).values(), value, depth);
  if (open) draw();
  return h("details", { open, on: { toggle: draw } }, h("summary", {}, name, isList ? "[ … ] " : "{ … } ", h("span", { class: "muted" }, summary)), content);
}

function grow(content, keys, value, depth, drawn = 0) {
  let count = 0;
  for (let next = keys.next(); !next.done; next = keys.next()) {
    const key = next.value;
    content.append(h("div", { class: "pair" }, node(value[key], depth + 1, [foreign(key, { class: "key" }), ": "])));
    count += 1;
    if (count === PART) break;
  }
  const total = drawn + count;
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (total >= size) return;
  const more = button(`Show more (${number(total)} of ${number(size)})`, () => {
    more.remove();
    grow(content, keys, value, depth, total);
  }, { class: "link" });
  content.append(more);
}
