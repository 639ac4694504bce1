// Follows a ledger: over the WebSocket where its contract has one and the token may listen, else by asking again.

import { at, get, session } from "./api.js";
import { poll } from "./poll.js";

const HEARTBEAT_MS = 5 * 60_000;
const LONGEST_PAUSE_MS = 30_000;

export const streamScope = (scope) => {
  const [runtime, stream] = scope.split(":").map((part) => part.replaceAll("%3A", ":").replaceAll("%25", "%"));
  return { runtime_id: runtime, stream_id: stream };
};

export const pushes = (contract) => ["sync", "realtime", "streams"].includes(contract) && session.has("consumer");

// tell.event(event), tell.gap(text), tell.state(name, text). Ends with the signal.
export function follow({ contract, scope, after, partition, type, fromOldest, signal }, tell) {
  const reader = { contract, scope, partition, type, fromOldest, at: after };
  if (pushes(contract)) new Socket(reader, signal, tell).open();
  else asking(reader, signal, tell);
}

function asking(reader, signal, tell) {
  tell.state("live", "asking every 2 s");
  poll(async () => {
    const path = at`/v1/ledgers/${reader.contract}/${reader.scope}/events`;
    const query = { after: reader.at, partition: reader.partition, type: reader.type, max: 200 };
    const page = await get(path, query, signal);
    for (const event of page.events) arrived(reader, event, tell);
    reader.at = page.next_after;
  }, { every: 2000, signal });
}

// Positions are dense where nothing is filtered, so one that is missing is a gap.
function arrived(reader, event, tell) {
  const all = !reader.partition && !reader.type && [session.claims.partitions].flat().includes("*");
  if (all && reader.at && event.position > reader.at + 1) {
    tell.gap(`Gap: ${span(reader.at + 1, event.position - 1)} did not arrive. They may have been pruned.`);
  }
  if (event.position <= reader.at) return;
  reader.at = event.position;
  if (!reader.type || event.type === reader.type) tell.event(event);
}

const span = (first, last) => (first === last ? `position ${first}` : `positions ${first} to ${last}`);

class Socket {
  constructor(reader, signal, tell) {
    Object.assign(this, { reader, signal, tell, failures: 0, heart: 0 });
    signal.addEventListener("abort", () => this.socket?.close());
  }

  async open() {
    this.tell.state("connecting", "connecting …");
    try {
      const { websocket_url: url } = await get("/health", {}, this.signal);
      if (this.signal.aborted) return;
      this.socket = new WebSocket(url);
    } catch {
      this.again();
      return;
    }
    const { client_id, projects } = session.claims;
    const project = this.reader.contract === "sync" ? this.reader.scope : [projects].flat()[0];
    this.socket.onopen = () => this.say("connect", { token: session.token, client_id, project });
    this.socket.onmessage = (message) => this.hear(JSON.parse(message.data));
    this.socket.onclose = () => this.again();
  }

  say(type, payload) {
    this.socket.send(JSON.stringify({ type, protocol_version: "1.0", payload }));
  }

  again() {
    clearInterval(this.heart);
    if (this.signal.aborted || this.ended) return;
    const pause = Math.min(LONGEST_PAUSE_MS, 1000 * 2 ** this.failures);
    this.failures += 1;
    this.tell.state("reconnecting", `connection lost; trying again in ${Math.round(pause / 1000)} s. Nothing is lost: reading goes on where it stopped`);
    setTimeout(() => this.signal.aborted || this.open(), pause);
  }

  hear({ type, payload }) {
    const heard = { connected: this.connected, sync_response: this.page, event_broadcast: this.broadcast, subscribed: this.subscribed, event: this.event, error: this.error };
    heard[type]?.call(this, payload);
  }

  connected() {
    this.heart = setInterval(() => this.say("heartbeat", {}), HEARTBEAT_MS);
    const { contract, scope, fromOldest } = this.reader;
    if (contract === "sync") this.sync({});
    else if (contract === "realtime") this.say("subscribe", { kind: "session", session_id: scope, after_sequence: this.reader.at });
    else this.say("subscribe", { kind: "stream", ...streamScope(scope), start: fromOldest ? "snapshot" : "tail" });
  }

  sync(more) {
    const partitions = this.reader.partition ? { partitions: [this.reader.partition] } : {};
    this.held = [];
    this.say("sync", { ...partitions, since_committed_id: this.reader.at, ...more });
  }

  page(page) {
    if (page.pruned_through_committed_id > this.reader.at) {
      this.tell.gap(`Gap: ${span(this.reader.at + 1, page.pruned_through_committed_id)} were pruned before they could be shown.`);
      this.reader.at = page.pruned_through_committed_id;
    }
    for (const event of page.events) arrived(this.reader, ofSync(event), this.tell);
    if (page.has_more) {
      this.say("sync", { ...(this.reader.partition ? { partitions: [this.reader.partition] } : {}), since_committed_id: page.next_since_committed_id, sync_to_committed_id: page.sync_to_committed_id });
      return;
    }
    this.reader.at = Math.max(this.reader.at, page.next_since_committed_id);
    const held = this.held;
    this.held = null;
    held.forEach((event) => arrived(this.reader, event, this.tell));
    this.listening();
  }

  broadcast(event) {
    if (this.held) this.held.push(ofSync(event));
    else arrived(this.reader, ofSync(event), this.tell);
  }

  subscribed() {
    this.listening();
  }

  listening() {
    this.failures = 0;
    this.tell.state("live", "events arrive as they are committed");
  }

  event({ event }) {
    const shown = this.reader.contract === "realtime" ? ofSession(event) : ofStream(event);
    if (shown.type === "StreamGap") {
      const { dropped_count: dropped } = event.payload || {};
      this.tell.gap(`Gap: ${dropped ?? "some"} events up to position ${shown.position} are gone.`);
      this.reader.at = shown.position;
      return;
    }
    arrived(this.reader, shown, this.tell);
  }

  error({ code, message }) {
    const goesOn = ["auth_failed", "server_error"].includes(code);
    this.ended = !goesOn;
    this.tell.state("ended", message);
    if (!["auth_failed", "server_error", "forbidden", "rate_limited"].includes(code)) this.tell.gap(message);
  }
}

const ofSync = (event) => ({ position: event.committed_id, id: event.id, committed_ms: event.status_updated_at, type: event.event?.type, partitions: event.partitions, by: { client_id: event.client_id }, content: { event: event.event, ...(event.meta ? { meta: event.meta } : {}) } });
const ofSession = (event) => ({ position: event.sequence, id: event.eventId, committed_ms: Date.parse(event.ts), type: event.type, partitions: [], by: {}, content: event });
const ofStream = (event) => ({ position: event.seq_no, id: event.event_id, committed_ms: event.ts_ms, type: event.event_type, partitions: [], by: {}, content: event });
