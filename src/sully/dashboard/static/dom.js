// Preact with htm: html`<p>${text}</p>`. Every text is escaped by Preact; nothing is parsed as HTML.
import { h, render, Fragment } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { h, render, Fragment };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "./vendor/hooks.js";
export const html = htm.bind(h);
