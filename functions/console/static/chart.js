// Pictures, drawn as SVG: the pipeline, a sparkline, and places on a plane.

import { fill, svg } from "./dom.js";
import { duration, number } from "./format.js";

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

const BOXES = {
  commit: [0, 105, "Commit"],
  fan_out: [215, 15, "Fan-out"],
  index: [215, 105, "Index"],
  archive: [215, 195, "Archive"],
  targets: [430, 15, "Targets"],
  tables: [430, 195, "Tables"],
};
const WAYS = [["commit", "fan_out"], ["commit", "index"], ["commit", "archive"], ["fan_out", "targets"], ["archive", "tables"]];
const [WIDE, HIGH] = [165, 70];

// stages: name → {state: good|warning|bad|plain, lines: [text, text]}
export function pipeline(stages) {
  const told = Object.entries(stages).map(([name, { lines }]) => `${BOXES[name][2]}: ${lines.filter(Boolean).join(", ")}`);
  return svg("svg", { class: "pipeline", viewBox: "-2 0 600 280", role: "img", "aria-label": `The pipeline. ${told.join(". ")}.` },
    WAYS.map(([from, to]) => way(BOXES[from], BOXES[to], stages[to]?.state)),
    Object.entries(BOXES).map(([name, box]) => stage(box, stages[name] || { state: "plain", lines: ["–"] })));
}

function way([x, y], [tox, toy], state = "plain") {
  const [from, mid] = [x + WIDE, (x + WIDE + tox) / 2];
  const d = `M${from},${y + HIGH / 2} C${mid},${y + HIGH / 2} ${mid},${toy + HIGH / 2} ${tox - 6},${toy + HIGH / 2}`;
  const [tip, high] = [tox - 1, toy + HIGH / 2];
  return svg("g", { class: `way ${state}` }, svg("path", { d }), svg("polygon", { points: `${tip},${high} ${tip - 8},${high - 5} ${tip - 8},${high + 5}` }));
}

function stage([x, y, title], { state, lines }) {
  return svg("g", { class: `stage ${state}` },
    svg("rect", { x, y, width: WIDE, height: HIGH, rx: 6 }),
    svg("rect", { class: "edge", x, y, width: 4, height: HIGH, rx: 2 }),
    svg("text", { class: "name", x: x + 16, y: y + 24 }, title),
    lines.filter(Boolean).slice(0, 2).map((line, index) => svg("text", { x: x + 16, y: y + 43 + index * 16 }, line)));
}

export const lagText = ({ lag_events: events, worst_lag_seconds: seconds }) =>
  events ? [`${number(events)} behind`, `oldest ${duration(seconds)}`] : ["up to date"];

// markers: [{id, label, revision, trail: [{lat, lon, revision}]}]; the last of a trail is where it is now.
export function plot(markers, chosen) {
  const points = markers.flatMap((marker) => marker.trail);
  const box = bounds(points);
  const [width, height, edge] = [640, 400, 46];
  const x = (lon) => edge + ((lon - box.west) / (box.east - box.west)) * (width - 2 * edge);
  const y = (lat) => height - edge - ((lat - box.south) / (box.north - box.south)) * (height - 2 * edge);
  const lines = [0, 1, 2, 3, 4].map((part) => {
    const lon = box.west + ((box.east - box.west) * part) / 4;
    const lat = box.south + ((box.north - box.south) * part) / 4;
    return svg("g", { class: "grid" },
      svg("line", { x1: x(lon), x2: x(lon), y1: edge, y2: height - edge }), svg("line", { x1: edge, x2: width - edge, y1: y(lat), y2: y(lat) }),
      svg("text", { x: x(lon), y: height - edge + 18, "text-anchor": "middle" }, degrees(lon)),
      svg("text", { x: edge - 6, y: y(lat) + 4, "text-anchor": "end" }, degrees(lat)));
  });
  const label = `${markers.length} markers between latitude ${degrees(box.south)} and ${degrees(box.north)}, longitude ${degrees(box.west)} and ${degrees(box.east)}. The table lists them.`;
  return svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, lines,
    markers.map((marker) => drawn(marker, x, y, marker.id === chosen)));
}

function drawn({ label, revision, trail }, x, y, isChosen) {
  const here = trail.at(-1);
  const right = x(here.lon) > 520;
  const name = svg("text", { x: x(here.lon) + (right ? -10 : 10), y: y(here.lat) - 8, "text-anchor": right ? "end" : "start" });
  fill(name, `${String(label).slice(0, 24)} · r${revision}`);
  return svg("g", { class: isChosen ? "marker chosen" : "marker" },
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
