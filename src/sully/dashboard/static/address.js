// The address of a view: #/page?filter=value. It can be shared: filters and selection are in it.
import { useEffect, useState } from "./dom.js";

/** @typedef {{page: string, params: URLSearchParams}} Address */

/** @returns {Address} */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { page: path || "fleet", params: new URLSearchParams(query) };
}

/** @param {string} page @param {Record<string, string>} [params] */
export function link(page, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value));
  const text = query.toString();
  return `#/${page}${text ? `?${text}` : ""}`;
}

/** Change parameters of the current address; an empty value removes one.
 * @param {Record<string, string>} changes */
export function change(changes) {
  const { page, params } = current();
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const next = link(page, Object.fromEntries(params));
  if (next !== location.hash) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** @returns {Address} */
export function useAddress() {
  const [address, set] = useState(current);
  useEffect(() => {
    const update = () => set(current());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return address;
}
