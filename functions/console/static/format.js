// Numbers, sizes and times as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", year: "numeric" });

export const number = (value) => (value === null || value === undefined ? "–" : WHOLE.format(value));

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1024) return `${value} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let size = value / 1024;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function clock(ms) {
  if (ms === null || ms === undefined) return "–";
  const at = new Date(ms);
  const isThisYear = at.getFullYear() === new Date().getFullYear();
  return `${(isThisYear ? DAY : DATE).format(at)}, ${CLOCK.format(at)}`;
}

export const time = (ms) => (ms === null || ms === undefined ? "–" : CLOCK.format(new Date(ms)));

export function ago(ms) {
  if (ms === null || ms === undefined) return "never";
  const seconds = (Date.now() - ms) / 1000;
  if (seconds < -1) return `in ${duration(-seconds)}`;
  return seconds < 1 ? "now" : `${duration(seconds)} ago`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export const words = (name) => String(name).replaceAll("_", " ");
