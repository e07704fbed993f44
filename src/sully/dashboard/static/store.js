// What the page knows of the cluster. Pages subscribe and are drawn once per frame.
import { useLayoutEffect, useRef, useState } from "./dom.js";

/** @typedef {{d: string, n: string, s: string, u?: 1, f?: 1, c?: string[], t?: string[], p?: string[]}} Row */

export const store = {
  /** A row that changes stays the same object: who has it sees the change. @type {Map<string, Row>} */
  devices: new Map(),
  /** @type {{namespace: string, name: string, classes: string[]}[]} */
  pending: [],
  /** Whether everything was received once. */
  loaded: false,
  /** Why nothing is loaded yet. */
  problem: "",
  /** Why there is no connection to the dashboard. */
  failure: "",
  /** How often everything was received again: what was loaded before may be out of date. */
  restarts: 0,
  /** Since when the API server does not answer, as the dashboard knows. */
  staleSince: "",
  /** Kinds that the viewer may not list. @type {string[]} */
  hidden: [],
  connected: false,
  lastHeard: 0,
  /** Raised with every change of devices. */
  revision: 0,
  /** Raised when devices come, go, or change their node or their classes: then groups change. */
  arrangement: 0,
  /** Rows that changed since the last frame. @type {Set<Row>} */
  touched: new Set(),
  /** How often each kind changed. @type {Record<string, number>} */
  kinds: {},
};

/** @type {Set<() => void>} */
const listeners = new Set();
let scheduled = false;

/** Let subscribers look at the store, in the next frame. */
export function notify() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const listener of [...listeners]) listener();
    store.touched.clear();
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
  const [, draw] = useState(0);
  const value = select(store);
  const drawn = useRef(null);
  drawn.current = { select, value };
  useLayoutEffect(() => {
    const compare = () => {
      if (drawn.current.select(store) !== drawn.current.value) draw((n) => n + 1);
    };
    // What came between drawing and subscribing would otherwise stay unseen until the next change.
    compare();
    return subscribe(compare);
  }, []);
  return value;
}

/** Add or change a row; report whether it belongs to other groups now. @param {Row} row */
function put(row) {
  const old = store.devices.get(row.d);
  if (!old) {
    store.devices.set(row.d, row);
    return true;
  }
  const moved = old.n !== row.n || String(old.c) !== String(row.c);
  for (const name of ["n", "s", "u", "f", "c", "t", "p"]) old[name] = row[name];
  store.touched.add(old);
  return moved;
}

/** What each event of the stream changes. @type {Record<string, (data: any) => void>} */
export const changes = {
  fleet: (data) => {
    store.devices = new Map(data.devices.map((row) => [row.d, row]));
    if (store.loaded) store.restarts++;
    store.loaded = true;
    store.problem = "";
    store.revision++;
    store.arrangement++;
  },
  devices: (data) => {
    let moved = data.removed.length > 0;
    for (const name of data.removed) store.devices.delete(name);
    for (const row of data.changed) moved = put(row) || moved;
    if (moved) store.arrangement++;
    store.revision++;
  },
  pending: (data) => (store.pending = data),
  changed: (data) => {
    for (const kind of data) store.kinds[kind] = (store.kinds[kind] || 0) + 1;
  },
  stale: (data) => (store.staleSince = data.since),
  hidden: (data) => (store.hidden = data),
  loading: (data) => (store.problem = data.error),
  beat: () => {},
};
