// Curves: tainted devices by class, evictions per minute, pending pods, time to repair.
import { Loaded, Section, Table, duration } from "./components.js";
import { useData } from "./data.js";
import { html, useEffect, useRef } from "./dom.js";
import uPlot from "./vendor/uplot.js";

const STROKES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4]];
/** There is no half of a pod. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
/** How often the server takes a sample. */
const SAMPLES_MS = 5000;
const seconds = (time) => new Date(time).getTime() / 1000;

export function ChartsPage() {
  const state = useData("charts", {}, ["devicetaintrules", "pods", "taintrecords"], SAMPLES_MS);
  return html`<h1>Charts</h1><${Loaded} state=${state}>${(data) => html`
    <${Chart} title="Tainted devices by class" ...${tainted(data.samples)} />
    <${Chart} title="Pending pods" times=${data.samples.map((s) => seconds(s.time))} series=${{ "pending pods": data.samples.map((s) => s.pending) }} />
    ${!data.recorded && html`<p class="note">This server keeps no records of evictions; there are no curves of the past.</p>`}
    <${Chart} title="Evictions per minute" ...${minutes(data.evictions)} bars />
    <${Chart} title="Time to repair: from a taint to its removal, in minutes" times=${data.repairs.map((r) => seconds(r.time))}
      series=${{ minutes: data.repairs.map((r) => Math.round(r.seconds / 6) / 10) }} points />
    <p class="note">Tainted devices and pending pods are sampled while the dashboard runs. Evictions and repairs are from records.</p>`}<//>`;
}

/** The classes with the most tainted devices: more lines could not be told apart. */
function tainted(samples) {
  const most = new Map();
  for (const sample of samples) for (const [name, count] of Object.entries(sample.tainted)) most.set(name, Math.max(count, most.get(name) ?? 0));
  const names = [...most].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
  const shown = names.slice(0, STROKES.length).sort();
  return {
    times: samples.map((s) => seconds(s.time)),
    series: Object.fromEntries(shown.map((name) => [name, samples.map((s) => s.tainted[name] || 0)])),
    note: names.length > shown.length ? `${names.length - shown.length} more classes have fewer tainted devices.` : "",
  };
}

/** Minutes without evictions count as none; up to now, a day at most and half an hour at least. */
function minutes(pairs) {
  if (!pairs.length) return { times: [], series: { evictions: [] } };
  const counts = new Map(pairs);
  const last = Math.floor(Date.now() / 60000) * 60;
  const first = Math.min(Math.max(pairs[0][0], last - 24 * 3600), last - 1800);
  const times = [], values = [];
  for (let at = first; at <= last; at += 60) {
    times.push(at);
    values.push(counts.get(at) || 0);
  }
  return { times, series: { evictions: values } };
}

function Chart({ title, times, series, note = "", bars = false, points = false }) {
  const box = useRef(null);
  const names = Object.keys(series);
  const empty = times.length < 1 || !names.length;
  useEffect(() => {
    if (empty) return undefined;
    const plot = () => {
      box.current.replaceChildren();
      const style = getComputedStyle(document.documentElement);
      const ink = style.getPropertyValue("--muted").trim(), grid = style.getPropertyValue("--rule").trim();
      const axis = { stroke: ink, grid: { stroke: grid }, ticks: { stroke: grid } };
      return new uPlot({
        width: Math.max(280, box.current.clientWidth), height: 180, legend: { show: false }, cursor: { show: false },
        scales: { y: { range: (_u, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 1) * 1.1)] } },
        axes: [axis, { ...axis, size: 44, incrs: points ? undefined : WHOLE }],
        series: [{}, ...names.map((label, at) => ({ label, stroke: style.getPropertyValue(STROKES[at % 5]).trim(), width: points ? 0 : 2, dash: DASHES[at % 5],
          fill: bars ? style.getPropertyValue(STROKES[at % 5]).trim() : undefined, paths: bars ? uPlot.paths.bars() : undefined, points: { show: points, size: 6 } }))],
      }, [times, ...names.map((name) => series[name])], box.current);
    };
    let drawn = plot();
    const redraw = () => { drawn.destroy(); drawn = plot(); };
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    addEventListener("resize", redraw);
    return () => { scheme.removeEventListener("change", redraw); removeEventListener("resize", redraw); drawn.destroy(); };
  }, [JSON.stringify([times, series])]);
  const last = (values) => values[values.length - 1] ?? 0;
  return html`<${Section} title=${title}>
    ${empty ? html`<p class="empty">No data yet.</p>` : html`
      <ul class="keys">${names.map((name, at) => html`<li><svg width="26" height="8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" class=${`stroke-${at % 5}`} stroke-dasharray=${DASHES[at % 5].join(" ")} /></svg> ${name}: ${last(series[name])}</li>`)}</ul>
      ${note && html`<p class="note">${note}</p>`}
      <div class="chart" ref=${box} role="img" aria-label=${`${title}; now ${names.map((name) => `${name} ${last(series[name])}`).join(", ")}`}></div>
      <details><summary>Numbers</summary><${Table} caption=${title} columns=${["Time", ...names]}
        rows=${times.slice(-60).map((time, at) => html`<tr><td>${new Date(time * 1000).toLocaleTimeString()}</td>${names.map((name) => html`<td>${series[name].slice(-60)[at]}</td>`)}</tr>`)} /></details>`}<//>`;
}
