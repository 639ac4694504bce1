// Pictures, drawn as SVG: the pipeline, a sparkline, and places on a plane.

import { fill, svg } from "./dom.js";
import { duration, number, plural } from "./format.js";

// values: numbers, the oldest first.
export function sparkline(values, label) {
  const [width, height] = [240, 44];
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${(height - 3 - (value / most) * (height - 8)).toFixed(1)}`);
  const area = `M0,${height} L${points.join(" L")} L${width},${height} Z`;
  return svg("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    svg("path", { class: "area", d: area }), svg("polyline", { points: points.join(" ") }));
}

// Where each stage is drawn: across on a wide screen, downwards on a narrow one. Styles show one of the two.
const ACROSS = {
  shape: "across", viewBox: "-2 0 602 284", wide: 165,
  boxes: { commit: [0, 100], fan_out: [215, 0], index: [215, 100], archive: [215, 200], targets: [430, 0], tables: [430, 200] },
};
const DOWN = {
  shape: "down", viewBox: "-2 0 344 404", wide: 158,
  boxes: { commit: [0, 0], fan_out: [20, 106], index: [20, 212], archive: [20, 318], targets: [184, 106], tables: [184, 318] },
};
const TITLES = { commit: "Commit", fan_out: "Fan-out", index: "Index", archive: "Archive", targets: "Targets", tables: "Tables" };
const WAYS = [["commit", "fan_out"], ["commit", "index"], ["commit", "archive"], ["fan_out", "targets"], ["archive", "tables"]];
const HIGH = 84;

// stages: name → {state: good|warning|bad|plain, lines: [text, text, text]}
export function pipeline(stages) {
  const told = Object.entries(stages).map(([name, { lines }]) => `${TITLES[name]}: ${lines.filter(Boolean).join(", ")}`);
  return [ACROSS, DOWN].map((plan) =>
    svg("svg", { class: `pipeline ${plan.shape}`, viewBox: plan.viewBox, role: "img", "aria-label": `The pipeline. ${told.join(". ")}.` },
      WAYS.map(([from, to]) => way(plan, from, to, stages[to]?.state)),
      Object.keys(TITLES).map((name) => stage(plan, name, stages[name] || { state: "plain", lines: ["–"] }))));
}

function way(plan, from, to, state = "plain") {
  const [[x, y], [tox, toy]] = [plan.boxes[from], plan.boxes[to]];
  const [tip, high] = [tox - 1, toy + HIGH / 2];
  const [start, mid] = [x + plan.wide, (x + plan.wide + tox) / 2];
  const isBelow = plan.shape === "down" && from === "commit";
  const d = isBelow ? `M8,${HIGH} V${high} H${tip - 6}` : `M${start},${y + HIGH / 2} C${mid},${y + HIGH / 2} ${mid},${high} ${tip - 5},${high}`;
  const [long, half] = plan.shape === "down" ? [5, 4] : [8, 5];
  return svg("g", { class: `way ${state}` }, svg("path", { d }), svg("polygon", { points: `${tip},${high} ${tip - long},${high - half} ${tip - long},${high + half}` }));
}

function stage(plan, name, { state, lines }) {
  const [x, y] = plan.boxes[name];
  return svg("g", { class: `stage ${state}` },
    svg("rect", { x, y, width: plan.wide, height: HIGH, rx: 6 }),
    svg("rect", { class: "edge", x, y, width: 4, height: HIGH, rx: 2 }),
    svg("text", { class: "name", x: x + 16, y: y + 23 }, TITLES[name]),
    lines.filter(Boolean).slice(0, 3).map((line, index) => svg("text", { x: x + 16, y: y + 41 + index * 16 }, line)));
}

export function lagLines({ events_read: read, lag_events: events, worst_lag_seconds: seconds, gaps }) {
  const missing = gaps ? `gaps in ${plural(gaps, "ledger")}` : null;
  const seen = read === undefined ? null : `${number(read)} events`;
  return events ? [missing || seen, `${number(events)} behind`, `oldest ${duration(seconds)}`] : [seen, "up to date", missing || "no gaps"];
}

// markers: [{id, label, revision, trail: [{lat, lon, revision}]}]; the last of a trail is where it is now.
export function plot(markers) {
  const box = bounds(markers.flatMap((marker) => marker.trail));
  const label = `${plural(markers.length, "marker")} between latitude ${degrees(box.south)} and ${degrees(box.north)}, longitude ${degrees(box.west)} and ${degrees(box.east)}. The table lists them.`;
  return [["across", 640, 400, 4], ["down", 340, 320, 2]].map(([shape, width, height, parts]) => {
    const edge = 46;
    const x = (lon) => edge + ((lon - box.west) / (box.east - box.west)) * (width - 2 * edge);
    const y = (lat) => height - edge - ((lat - box.south) / (box.north - box.south)) * (height - 2 * edge);
    return svg("svg", { class: `plot ${shape}`, viewBox: `0 16 ${width} ${height - 30}`, role: "img", "aria-label": label },
      Array.from({ length: parts + 1 }, (_, part) => part / parts).map((share) => grid(box, share, x, y, [edge, width - edge, height - edge])),
      markers.map((marker) => drawn(marker, x, y, width)));
  });
}

function grid(box, share, x, y, [edge, right, bottom]) {
  const lon = box.west + (box.east - box.west) * share;
  const lat = box.south + (box.north - box.south) * share;
  return svg("g", { class: "grid" },
    svg("line", { x1: x(lon), x2: x(lon), y1: edge, y2: bottom }), svg("line", { x1: edge, x2: right, y1: y(lat), y2: y(lat) }),
    svg("text", { x: x(lon), y: bottom + 18, "text-anchor": "middle" }, degrees(lon)),
    svg("text", { x: edge - 6, y: y(lat) + 4, "text-anchor": "end" }, degrees(lat)));
}

function drawn({ label, revision, trail }, x, y, width) {
  const here = trail.at(-1);
  const right = x(here.lon) > width * 0.7;
  const name = svg("text", { x: x(here.lon) + (right ? -10 : 10), y: y(here.lat) - 8, "text-anchor": right ? "end" : "start" });
  fill(name, `${String(label).slice(0, 24)} · r${revision}`);
  return svg("g", { class: "marker" },
    svg("polyline", { points: trail.map((one) => `${x(one.lon)},${y(one.lat)}`).join(" ") }),
    trail.slice(0, -1).map((one) => svg("circle", { class: "past", cx: x(one.lon), cy: y(one.lat), r: 3 }, svg("title", {}, `revision ${one.revision}`))),
    svg("circle", { cx: x(here.lon), cy: y(here.lat), r: 5.5 }), name);
}

function bounds(points) {
  const range = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const margin = Math.max((high - low) * 0.1, 0.005);
    return [low - margin, high + margin];
  };
  const [south, north] = range(points.map((point) => point.lat));
  const [west, east] = range(points.map((point) => point.lon));
  return { south, north, west, east };
}

const degrees = (value) => value.toFixed(3);
