// What the server streams: all devices, then changes. Pages subscribe and are drawn once per frame.
import { sessionEnded } from "./api.js";
import { useEffect, useState } from "./dom.js";

/** @typedef {{d: string, n: string, s: string, u?: 1, f?: 1, c?: string[], t?: string[], p?: string[]}} Row */

export const store = {
  /** @type {Map<string, Row>} */
  devices: new Map(),
  /** @type {{namespace: string, name: string, classes: string[]}[]} */
  pending: [],
  loaded: false,
  /** Why nothing is loaded yet. */
  problem: "",
  /** Since when the API server does not answer, as the dashboard knows. */
  staleSince: "",
  connected: false,
  lastHeard: 0,
  /** Raised with every change of devices. */
  revision: 0,
  /** How often each kind changed. @type {Record<string, number>} */
  kinds: {},
};

/** @type {Set<() => void>} */
const listeners = new Set();
let scheduled = false;

function notify() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const listener of [...listeners]) listener();
  });
}

/** @param {() => void} listener */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Draw a component again when what `select` returns has changed.
 * @template T @param {(s: typeof store) => T} select @returns {T} */
export function useStore(select) {
  const [, set] = useState(0);
  const value = select(store);
  useEffect(() => {
    let last = select(store);
    return subscribe(() => {
      const next = select(store);
      if (next !== last) {
        last = next;
        set((n) => n + 1);
      }
    });
  }, []);
  return value;
}

/** @type {EventSource | null} */
let source = null;
const handlers = {
  fleet: (data) => {
    store.devices = new Map(data.devices.map((row) => [row.d, row]));
    store.loaded = true;
    store.problem = "";
    store.revision++;
  },
  devices: (data) => {
    for (const row of data.changed) store.devices.set(row.d, row);
    for (const name of data.removed) store.devices.delete(name);
    store.revision++;
  },
  pending: (data) => (store.pending = data),
  changed: (data) => {
    for (const kind of data) store.kinds = { ...store.kinds, [kind]: (store.kinds[kind] || 0) + 1 };
  },
  stale: (data) => (store.staleSince = data.since),
  loading: (data) => (store.problem = data.error),
  beat: () => {},
};

export function connect() {
  disconnect();
  source = new EventSource("api/stream");
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => {
      store.connected = true;
      store.lastHeard = Date.now();
      handle(JSON.parse(/** @type {MessageEvent} */ (event).data));
      notify();
    });
  }
  source.addEventListener("ended", () => {
    disconnect();
    sessionEnded();
  });
  source.onerror = () => {
    store.connected = false;
    notify();
    // A browser gives up after an answer that is not a stream: the session may have ended.
    if (source && source.readyState === EventSource.CLOSED) setTimeout(reconnect, 3000);
  };
}

async function reconnect() {
  if (!source || source.readyState !== EventSource.CLOSED) return;
  const response = await fetch("api/session").catch(() => null);
  if (response && response.status === 401) sessionEnded();
  else connect();
}

export function disconnect() {
  if (source) source.close();
  source = null;
  store.connected = false;
  notify();
}

// A connection that is dead without an error is noticed by its silence.
setInterval(() => {
  if (source && store.connected && Date.now() - store.lastHeard > 20000) {
    store.connected = false;
    notify();
    connect();
  }
}, 5000);
