// The selection as text for the address: a pool that is selected as a whole is DRIVER/POOL/*.
import { partsOf } from "./fleet_layout.js";
import { store } from "./store.js";

function pools() {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const id of store.devices.keys()) {
    const { driver, pool } = partsOf(id);
    const key = `${driver}/${pool}`;
    const members = found.get(key);
    if (members) members.push(id);
    else found.set(key, [id]);
  }
  return found;
}

/** @param {Set<string>} ids */
export function encodeSelection(ids) {
  if (!ids.size) return "";
  const words = [];
  for (const [key, members] of pools()) {
    const selected = members.filter((id) => ids.has(id));
    if (selected.length > 1 && selected.length === members.length) words.push(`${key}/*`);
    else words.push(...selected);
  }
  return words.join(" ");
}

/** @param {string} text @returns {Set<string>} */
export function decodeSelection(text) {
  const ids = new Set();
  if (!text) return ids;
  const words = text.split(" ");
  const whole = words.some((word) => word.endsWith("/*")) ? pools() : null;
  for (const word of words) {
    const members = word.endsWith("/*") && whole ? whole.get(word.slice(0, -2)) : null;
    if (members) for (const id of members) ids.add(id);
    else if (store.devices.has(word)) ids.add(word);
  }
  return ids;
}
