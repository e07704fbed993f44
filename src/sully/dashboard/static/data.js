// Data that a page asks for: loaded again when it may have changed, and after a failure.
import { backoff, get } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { useStore } from "./store.js";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Data of the server, loaded again when one of the kinds changes, with `rest` ms in between.
 * @returns {{data: any, error: string, reload: () => void}} */
export function useData(path, params = {}, kinds = [], rest = 0) {
  const [state, set] = useState({ data: null, error: "" });
  const version = useStore((s) => [s.restarts, ...kinds.map((kind) => s.kinds[kind] ?? 0)].join());
  const key = JSON.stringify([path, params]);
  const loader = useRef(null);
  useEffect(() => {
    // Nothing of one object is shown as another one's.
    set((old) => (old.data || old.error ? { data: null, error: "" } : old));
    const own = (loader.current = loading(() => get(path, params), set, rest));
    return own.stop;
  }, [key]);
  useEffect(() => loader.current.load(), [key, version]);
  return { ...state, reload: () => loader.current.load() };
}

/** One request at a time. Changes that come meanwhile cause one more after it, so that an answer that
 * takes longer than the time between two changes is shown too.
 * @param {() => Promise<any>} ask @param {(state: any) => void} set @param {number} rest */
function loading(ask, set, rest) {
  let alive = true, running = false, again = false, failures = 0;
  /** @type {number | undefined} */
  let waiting;
  const load = async () => {
    again = true;
    if (running) return;
    clearTimeout(waiting);
    running = true;
    while (again && alive) {
      again = false;
      await once();
      if (rest) await sleep(rest);
    }
    running = false;
  };
  const once = async () => {
    try {
      const data = await ask();
      failures = 0;
      if (alive) set({ data, error: "" });
    } catch (error) {
      if (!alive) return;
      set((old) => ({ ...old, error: error.message }));
      if (error.transient) waiting = setTimeout(load, backoff(failures++));
    }
  };
  const stop = () => {
    alive = false;
    clearTimeout(waiting);
  };
  return { load: () => void load(), stop };
}
