// The connection to the server: one stream of events, opened again after every failure.
//
// It is read with fetch: an EventSource gives up after an answer that is not a stream, and does not
// say which answer that was.
import { backoff, send, sessionEnded } from "./api.js";
import { changes, notify, store } from "./store.js";

/** The server sends something every 5 seconds. After this silence what is shown is called stale. */
const STALE_AFTER = 20000;
/** After this silence the connection is given up: it is dead, without an error. */
const DEAD_AFTER = 60000;
/** Browsers open few connections to one server, so a hidden page does not keep one. */
const HIDDEN_AFTER = 60000;

/** The stream that is open or being opened. @type {AbortController | null} */
let current = null;
let failures = 0;
let began = 0;
/** @type {number | undefined} */
let waiting;
/** @type {number | undefined} */
let hiding;
let wanted = false;

/** Stay connected, from now on. */
export function connect() {
  wanted = true;
  failures = 0;
  open();
  closeWhenHidden();
}

/** Connect again if the connection was closed meanwhile. */
export function stayConnected() {
  if (!wanted) connect();
}

/** Close the connection. */
export function disconnect() {
  wanted = false;
  close("");
}

function close(reason) {
  clearTimeout(waiting);
  current?.abort();
  current = null;
  store.connected = false;
  store.failure = reason;
  notify();
}

async function open() {
  close(store.failure);
  const own = (current = new AbortController());
  began = Date.now();
  let reason;
  try {
    reason = await follow(own);
  } catch {
    reason = "the dashboard does not answer";
  }
  if (current === own) retry(reason);
}

/** Read the stream until it ends; return why. @param {AbortController} own */
async function follow(own) {
  const response = await send("stream", { signal: own.signal });
  if (response.status === 401) {
    sessionEnded();
    return "";
  }
  if (!response.ok || !response.body) {
    const body = await response.json().catch(() => ({}));
    return body.error || `the dashboard answered ${response.status}`;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = parser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return "the dashboard closed the connection";
    if (current !== own) return "";
    for (const [event, data] of parse(value)) {
      if (event === "ended") {
        sessionEnded();
        return "";
      }
      changes[event]?.(data);
    }
    heard();
  }
}

function heard() {
  failures = 0;
  store.connected = true;
  store.failure = "";
  store.lastHeard = Date.now();
  notify();
}

/** A function that turns pieces of the stream into the events that they complete. */
export function parser() {
  /** @type {string[]} */
  let pieces = [];
  /** @param {string} text @returns {[string, any][]} */
  return (text) => {
    pieces.push(text);
    // A large event comes in many pieces: they are joined once.
    if (!text.includes("\n")) return [];
    const events = pieces.join("").split("\n\n");
    pieces = [/** @type {string} */ (events.pop())];
    return events.flatMap((lines) => {
      const found = /^event: (\w+)\ndata: (.*)$/.exec(lines);
      return found ? [[found[1], JSON.parse(found[2])]] : [];
    });
  };
}

function retry(reason) {
  close(reason);
  if (!wanted || document.hidden) return;
  waiting = setTimeout(open, backoff(failures++));
}

setInterval(() => {
  if (!current) return;
  const silence = Date.now() - Math.max(began, store.lastHeard);
  if (silence > DEAD_AFTER) retry("the dashboard does not answer");
  else if (store.connected && silence > STALE_AFTER) {
    store.connected = false;
    notify();
  }
}, 5000);

function closeWhenHidden() {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => close("the page was hidden"), HIDDEN_AFTER);
}

document.addEventListener("visibilitychange", () => {
  closeWhenHidden();
  if (!document.hidden && wanted && !current) connect();
});
