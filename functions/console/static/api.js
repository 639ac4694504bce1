// The hub's HTTP API, and the token that opens it. The token is in session storage and in the header, nowhere else.

const BASE = new URL("../", import.meta.url);
const KEY = "millrace.token";

export class Problem extends Error {
  constructor(status, body) {
    super(body.message || body.error || `The hub answered ${status}.`);
    this.status = status;
    this.code = body.code || body.machine_code || "";
    this.details = body.details || {};
  }

  // A route that this hub does not have, as against a thing that is not there.
  get absent() {
    return this.status === 404 && this.details.field === "path";
  }
}

export const session = {
  get token() {
    return sessionStorage.getItem(KEY);
  },
  keep(token) {
    sessionStorage.setItem(KEY, token.trim());
  },
  forget() {
    sessionStorage.removeItem(KEY);
  },
  // What the token says of itself. Only the hub can tell whether it is true.
  get claims() {
    try {
      const part = this.token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
      const raw = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0));
      return JSON.parse(new TextDecoder().decode(raw)) || {};
    } catch {
      return {};
    }
  },
  has(role) {
    const { roles } = this.claims;
    return Array.isArray(roles) && roles.includes(role);
  },
};

// at`/v1/targets/${id}` writes each value so that it stays one part of the path.
export function at(texts, ...values) {
  return texts.reduce((path, text, index) => path + encodeURIComponent(values[index - 1]) + text);
}

export function address(path, query = {}) {
  const url = new URL(path.replace(/^\//, ""), BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

export async function ask(method, path, { query, body, signal } = {}) {
  const headers = session.token ? { authorization: `Bearer ${session.token}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(address(path, query), { method, headers, body: sent, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { message: "The hub does not answer. Is it running, and is this machine online?" });
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    if (response.ok) throw new Problem(0, { message: "The hub's answer broke off." });
    return {};
  });
  if (response.ok) return answer;
  const problem = new Problem(response.status, answer);
  if (problem.status === 401) dispatchEvent(new CustomEvent("token-refused", { detail: problem }));
  throw problem;
}

export const get = (path, query, signal) => ask("GET", path, { query, signal });
export const post = (path, body) => ask("POST", path, { body });

// As a command for a terminal. The token is a variable of the shell, so that it is in no history and no paste.
export function curl(path, query) {
  return `curl -sS -H "Authorization: Bearer $TOKEN" '${String(address(path, query)).replaceAll("'", "%27")}'`;
}
