// The shell: who is signed in, where one can go, and the screen that the address names.

import { Problem, session } from "./api.js";
import { fill, foreign, h, link } from "./dom.js";
import { clock, duration } from "./format.js";
import { button, field, toast } from "./ui.js";
import { audit } from "./audit.js";
import { events } from "./events.js";
import { overview } from "./overview.js";
import { retention } from "./retention.js";
import { sessions } from "./sessions.js";
import { streams } from "./streams.js";
import { tables } from "./tables.js";
import { targets } from "./targets.js";

const SCREENS = { overview, events, sessions, streams, targets, tables, retention, audit };
const shell = document.getElementById("shell");
let leaving = new AbortController();

// "#/events/sync/demo?after=3" → {name, parts, query}
function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: name in SCREENS ? name : "overview", parts, query: new URLSearchParams(query) };
}

// A token in the fragment is taken and gone from the address at once; a fragment is never sent to a server.
function takeToken() {
  if (!location.hash.startsWith("#token=")) return;
  const token = decodeURIComponent(location.hash.slice("#token=".length).split("&")[0]);
  history.replaceState(null, "", `${location.pathname}${location.search}#/overview`);
  if (token) session.keep(token);
}

function signIn(problem) {
  leave();
  document.title = "Sign in · Millrace";
  const token = h("textarea", { id: "token", rows: 5, required: true, autocomplete: "off", spellcheck: "false" });
  const enter = (event) => {
    event.preventDefault();
    if (!token.value.trim()) return;
    session.keep(token.value);
    draw();
  };
  const told = problem && h("p", { class: "notice bad", role: "alert" }, refusal(problem));
  fill(shell, h("main", { id: "content", class: "sign-in", tabindex: -1 },
    h("h1", {}, "Millrace console"),
    h("p", {}, "See and steer this hub. Paste a token with the role ", h("code", {}, "operator"), "."),
    told,
    h("form", { on: { submit: enter } },
      field("Token", token, "Kept in this tab only, until you close it or forget the token."),
      h("button", { class: "primary" }, "Open the console")),
    h("p", { class: "muted" }, "On a laptop, ", h("code", {}, "millrace token --client ops --project demo --partition '*' --role operator --role consumer"), " prints one.")));
  token.focus();
}

function refusal(problem) {
  const ended = session.claims.exp * 1000;
  if (ended < Date.now()) return `The token ended ${duration((Date.now() - ended) / 1000)} ago. Paste a new one.`;
  return ["The hub did not take the token: ", foreign(problem.message)];
}

function leave() {
  leaving.abort();
  leaving = new AbortController();
}

function forget() {
  session.forget();
  signIn();
  toast("The token is forgotten.");
}

function frame(current) {
  const { client_id: client, tenant = "default", exp } = session.claims;
  const item = (name) => h("li", {}, h("a", { href: link(name), "aria-current": name === current ? "page" : null }, name[0].toUpperCase() + name.slice(1)));
  const left = exp ? h("span", { class: "left" }, ` · ${duration(Math.max(0, exp - Date.now() / 1000)).replace(" ", "\u00a0")} left`) : null;
  return [
    h("header", { class: "bar" },
      h("a", { class: "brand", href: link("overview") }, "Millrace"),
      h("nav", { "aria-label": "Screens" }, h("ul", {}, Object.keys(SCREENS).map(item))),
      h("div", { class: "who" }, h("p", {}, foreign(client ?? "unknown"), h("span", { class: "muted" }, " · ", foreign(tenant), left)), button("Forget token", forget, { class: "quiet" }))),
    h("main", { id: "content", tabindex: -1 }),
  ];
}

function draw({ moved = false } = {}) {
  takeToken();
  if (!session.token) return signIn();
  if (session.claims.exp * 1000 < Date.now()) return signIn({ message: "" });
  leave();
  const here = place();
  fill(shell, frame(here.name));
  document.title = `${here.name[0].toUpperCase()}${here.name.slice(1)} · Millrace`;
  const content = document.getElementById("content");
  SCREENS[here.name](content, { ...here, signal: leaving.signal });
  shell.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  if (moved) (content.querySelector("h1") || content).focus({ preventScroll: true });
  return undefined;
}

// A screen that is not refreshed any more must not look as if it were.
const asleep = h("p", { class: "asleep", role: "status", hidden: true });
document.body.append(asleep);
addEventListener("asleep", () => {
  fill(asleep, `Nobody touched this page for a while: what it shows is of ${clock(Date.now())}. Click or press a key to go on.`);
  asleep.hidden = false;
});
addEventListener("awake", () => (asleep.hidden = true));
addEventListener("hashchange", () => location.hash === "#content" || draw({ moved: true }));
addEventListener("token-refused", (event) => signIn(event.detail));
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Problem || event.reason?.name === "AbortError") event.preventDefault();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("content")?.focus();
});
draw();
