// Requests to the server of the dashboard. A session is in a cookie that scripts cannot read, and
// browsers send to every port of the host. So each request has a key that only this origin knows.

/** An answer that is not a success; `message` is for the viewer. */
export class RequestError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether it may pass: no answer, too many requests, or an API server that is unreachable. */
  get transient() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const FIRST_DELAY = 1000, LONGEST_DELAY = 30000;
/** How long to wait before the next attempt. @param {number} failures how many there were before */
export function backoff(failures) {
  // Not all pages at the same moment.
  return Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures) * (0.5 + Math.random() / 2);
}

/** @type {Set<() => void>} */
const onEnd = new Set();
/** Call a function when the session has ended. @param {() => void} handler */
export const whenSessionEnds = (handler) => onEnd.add(handler);
export const sessionEnded = () => onEnd.forEach((handler) => handler());

const STORED = "sully-page-key";
/** The key, where the browser stores nothing. */
let pageKey = "";

/** @param {string} key */
function keep(key) {
  pageKey = key;
  try {
    localStorage.setItem(STORED, key);
  } catch {
    // Other tabs need a session of their own.
  }
}

/** Other tabs of this origin have the same session. */
function kept() {
  try {
    return localStorage.getItem(STORED) ?? pageKey;
  } catch {
    return pageKey;
  }
}

/** Send a request of this page. @param {string} path @param {RequestInit} [options] */
export const send = (path, options = {}) => fetch(`api/${path}`, { credentials: "same-origin", ...options, headers: { "X-Sully-Page-Key": kept(), ...options.headers } });

/** @param {string} path @param {RequestInit} options @returns {Promise<any>} */
async function request(path, options) {
  let response;
  try {
    response = await send(path, options);
  } catch {
    throw new RequestError(0, "the dashboard does not answer");
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok && path === "login") keep(body.key);
  if (response.ok) return body;
  if (response.status === 401 && path !== "login") sessionEnded();
  throw new RequestError(response.status, body.error || `the dashboard answered ${response.status}`);
}

/** @param {string} path @param {Record<string, string | string[] | undefined>} [params] */
export function get(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each) query.append(name, each);
  }
  const text = query.toString();
  return request(text ? `${path}?${text}` : path, {});
}

/** @param {string} path @param {object} [body] */
export function post(path, body = {}) {
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}
