// Small parts that several pages share.
import { link } from "./address.js";
import { useData } from "./data.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { STATES, drawShape, palette } from "./states.js";
import { useStore } from "./store.js";

/** @param {number} count @param {string} thing */
export const number = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

/** @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.round(s / 60)}m`;
  if (s < 172800) return `${Math.round(s / 3600)}h`;
  return `${Math.round(s / 86400)}d`;
}

/** Since when, or until when. @param {{time?: string}} props */
export function When({ time }) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 5000);
    return () => clearInterval(timer);
  }, []);
  if (!time) return html`<span>-</span>`;
  const seconds = (new Date(time).getTime() - now) / 1000;
  const text = seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
  return html`<time dateTime=${time} title=${new Date(time).toLocaleString()}>${text}</time>`;
}

/** The mark of a state, drawn as in the fleet; the text beside it is the same. */
export function Mark({ state, size = 14 }) {
  const ref = useRef(null);
  useEffect(() => {
    const draw = () => {
      const canvas = ref.current;
      if (!canvas) return;
      const scale = devicePixelRatio || 1;
      canvas.width = canvas.height = size * scale;
      const ctx = canvas.getContext("2d");
      ctx.scale(scale, scale);
      const colors = palette();
      drawShape(ctx, STATES[state].shape, 0, 0, size, colors[state], colors.paper);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => scheme.removeEventListener("change", draw);
  }, [state, size]);
  return html`<canvas ref=${ref} class="mark" aria-hidden="true" style=${{ width: `${size}px`, height: `${size}px` }} />`;
}

export function State({ state }) {
  const known = STATES[state] ?? STATES.unknown;
  return html`<span class="state" title=${known.text}><${Mark} state=${STATES[state] ? state : "unknown"} /> ${known.name}</span>`;
}

/** @param {{effect: string}} props */
export const Effect = ({ effect }) => html`<span class="effect" data-effect=${effect}>${effect}</span>`;

export const Taint = ({ taint }) => html`
  <code class="taint">${taint.key}${taint.value ? `=${taint.value}` : ""}</code> <${Effect} effect=${taint.effect} />`;

export const DeviceLink = ({ id }) => html`<a href=${link("device", { id })}>${id}</a>`;

export const PodLink = ({ namespace, name }) => html`
  <a href=${link("explain", { kind: "pod", name: `${namespace}/${name}` })}>${namespace}/${name}</a>`;

/** What is shown until the cluster was read. */
export function Reading() {
  const problem = useStore((s) => s.problem);
  return html`<p class="loading" role="status">Reading the cluster</p>${problem && html`<p class="problem" role="alert">${problem}</p>`}`;
}

/** What is shown while there is no data. */
export function Loaded({ state, children }) {
  if (state.error && !state.data) return html`<p class="problem" role="alert">${state.error}</p>`;
  if (!state.data) return html`<p class="loading" role="status">Loading</p>`;
  return html`${state.error && html`<p class="problem" role="alert">${state.error}</p>`}${children(state.data)}`;
}

/** A table that scrolls by itself on a narrow screen. */
export function Table({ caption, columns, rows, empty = "None." }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label=${caption}>
      <table>
        <caption class="hidden">${caption}</caption>
        <thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${rows}</tbody>
      </table>
    </div>`;
}

/** @param {{title: string, open?: boolean}} props */
export const Section = ({ title, children }) => html`<section><h2>${title}</h2>${children}</section>`;

/** How many pods a rule has evicted; a server without records knows at most the least.
 * @param {{evicted?: number, evictedAtLeast?: boolean}} progress */
export const evicted = (progress) => (progress.evictedAtLeast ? (progress.evicted ? `${progress.evicted}+` : "unknown") : String(progress.evicted ?? 0));

/** What explanations depend on. */
const EXPLAINED_BY = ["devicetaintrules", "resourceslicepatches", "resourceslices", "pods", "resourceclaims", "nodes", "managedclusters", "placements", "placementdecisions", "devicetaintpolicies", "devicemaintenances"];
/** The server reads everything again for an explanation, so it rests in between. */
const EXPLANATION_REST_MS = 2000;

/** An explanation as `sully explain` gives it. */
export function Explanation({ kind, name, cluster = "" }) {
  const state = useData("explain", { kind, name, cluster }, EXPLAINED_BY, EXPLANATION_REST_MS);
  return html`<${Loaded} state=${state}>${(data) => html`
    <p><strong>${data.state}</strong> (${data.cause})</p>
    ${data.summary.map((text) => html`<p>${text}</p>`)}
    ${data.remedies.length > 0 && html`<h3>What would help</h3>
      <ul class="remedies">${data.remedies.map((text) => html`<li>${text}</li>`)}</ul>`}
    ${data.details.map((table) => html`<h3>${table.title}</h3>
      <${Table} caption=${table.title} columns=${Object.keys(table.rows[0])}
        rows=${table.rows.map((row) => html`<tr>${Object.values(row).map((cell) => html`<td>${cell}</td>`)}</tr>`)} />`)}
    ${data.notes.map((text) => html`<p class="note">${text}</p>`)}`}<//>`;
}
