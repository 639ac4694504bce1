// Makes elements. Text is always text: nothing here, or anywhere in the console, turns a string into markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "open", "selected", "hidden", "indeterminate"]);

// h("button", {class: "quiet", on: {click: go}}, "Go")
export function h(tag, attrs, ...children) {
  return filled(document.createElement(tag), attrs, children);
}

export function svg(tag, attrs, ...children) {
  return filled(document.createElementNS(SVG, tag), attrs, children);
}

function filled(element, attrs, children) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "href") {
      // Only places inside the console: a value from an event never becomes an address.
      if (!String(value).startsWith("#")) throw new Error("links stay inside the console");
      element.setAttribute("href", value);
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Text of unknown origin: its direction is its own, and cannot turn round what stands beside it.
export function foreign(value, attrs) {
  return h("bdi", attrs, value === null || value === undefined ? "–" : String(value));
}

// The address of a screen: link("events", "sync", "demo", {after: 3}).
export function link(...parts) {
  const query = typeof parts.at(-1) === "object" ? parts.pop() : {};
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}${text ? `?${text}` : ""}`;
}
