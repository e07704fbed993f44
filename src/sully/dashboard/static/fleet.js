// The fleet page: filters, summary, the canvas or a table, and what can be done with a selection.
import { get } from "./api.js";
import { change, link, useAddress } from "./address.js";
import { ActButtons } from "./act.js";
import { DeviceLink, Mark, Reading, State, Table, number } from "./components.js";
import { html, useEffect, useMemo, useState } from "./dom.js";
import { FleetCanvas } from "./fleet_canvas.js";
import { compare, grouped } from "./fleet_layout.js";
import { decodeSelection, encodeSelection } from "./selection.js";
import { STATES } from "./states.js";
import { useStore } from "./store.js";

const FILTERS = ["class", "cel", "label", "uuid"];
const PAGE = 200;
const NO_CLASS = ["(no class)"];

export function FleetPage({ rights }) {
  const { params } = useAddress();
  const devices = useStore((s) => s.devices);
  const arrangement = useStore((s) => s.arrangement);
  const loaded = useStore((s) => s.loaded);
  const by = params.get("group") || "node";
  const values = useAttribute(by);
  const matching = useFilter(params);
  // Most changes leave every cell where it is. Then only the cells themselves are drawn again.
  const changing = params.get("text") || params.get("state") || by === "state" || params.get("view") === "table";
  const revision = useStore((s) => (changing ? s.revision : 0));
  const found = useMemo(() => filtered(devices.values(), params, matching.ids), [devices, arrangement, revision, params, matching.ids]);
  const state = params.get("state") || "";
  const shown = useMemo(() => (state ? found.filter((row) => row.s === state) : found), [found, state]);
  const groups = useMemo(() => grouped(shown, by, values), [shown, by, values]);
  const text = params.get("select") || "";
  const selected = useMemo(() => decodeSelection(text), [text, loaded]);
  const canvas = useMemo(() => html`<${FleetCanvas} groups=${groups} selected=${selected} onSelect=${select} onOpen=${(id) => (location.hash = link("device", { id }))} />`, [groups, selected]);
  if (!loaded) return html`<${Reading} />`;
  return html`
    <h1>Fleet</h1>
    <${Summary} />
    <${Filters} params=${params} by=${by} message=${matching.message} />
    <${Legend} rows=${found} params=${params} />
    <${SelectionBar} selected=${selected} shown=${shown} total=${devices.size} rights=${rights} select=${select} />
    ${!shown.length ? html`<${NoDevices} total=${devices.size} />` : params.get("view") === "table" ? html`<${DeviceTable} rows=${shown} selected=${selected} select=${select} />` : canvas}`;
}

function NoDevices({ total }) {
  if (total) return html`<p class="empty">No devices match the filters.</p>`;
  return html`<p class="empty">This cluster has no devices: no driver publishes a ResourceSlice, or you may not list them.</p>
    <p class="note">Install a DRA driver for your devices. <code>kubectl get resourceslices</code> lists what drivers publish; they appear here as soon as they do.</p>`;
}

const select = (ids) => change({ select: encodeSelection(ids) });

/** The value of the attribute by which devices are grouped. */
function useAttribute(by) {
  const [values, set] = useState({});
  const name = by.startsWith("attribute:") ? by.slice(10) : "";
  const turn = useStore((s) => (name ? Math.floor(s.revision / 50) : 0));
  useEffect(() => {
    if (!name) return set({});
    get("attributes", { name }).then((data) => set(data.values), () => set({}));
  }, [name, turn]);
  return values;
}

/** The devices that the server selects by class, CEL, label and UUID: the same as the commands. */
function useFilter(params) {
  const [state, set] = useState({ ids: null, message: "" });
  const query = Object.fromEntries(FILTERS.map((name) => [name, params.get(name) || ""]));
  const key = JSON.stringify(query);
  const used = Object.values(query).some(Boolean);
  const turn = useStore((s) => (used ? Math.floor(s.revision / 20) : 0));
  useEffect(() => {
    if (!used) return set({ ids: null, message: "" });
    let alive = true;
    const timer = setTimeout(() => get("select", query).then(
      (data) => alive && set({ ids: new Set(data.devices), message: data.message || "" }),
      (error) => alive && set({ ids: new Set(), message: error.message }),
    ), 200);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [key, turn]);
  return state;
}

function filtered(rows, params, ids) {
  const text = (params.get("text") || "").toLowerCase();
  const found = [];
  for (const row of rows) {
    if (ids && !ids.has(row.d)) continue;
    if (text && !`${row.d} ${row.n} ${(row.t || []).join(" ")} ${(row.p || []).join(" ")}`.toLowerCase().includes(text)) continue;
    found.push(row);
  }
  return found;
}

function Summary() {
  const devices = useStore((s) => s.devices);
  const revision = useStore((s) => s.revision);
  const pending = useStore((s) => s.pending);
  const classes = useMemo(() => tallies(devices.values(), pending), [devices, revision, pending]);
  const rows = classes.map(([name, tally]) => html`<tr>
    <th scope="row">${name === "" ? "All devices" : name === NO_CLASS[0] ? name : html`<a href=${link("fleet", { class: name })}>${name}</a>`}</th>
    <td>${tally.total}</td><td>${tally.used}</td><td>${tally.tainted}</td><td>${tally.free}</td>
    <td>${tally.pending ? html`<a href="#/pending">${tally.pending}</a>` : 0}</td></tr>`);
  return html`<div class="summary"><${Table} caption="Devices by class" columns=${["Class", "Total", "In use", "Tainted", "Free", "Pending pods"]} rows=${rows} /></div>`;
}

function tallies(rows, pending) {
  const classes = new Map([["", { total: 0, used: 0, tainted: 0, free: 0, pending: pending.length }]]);
  const tally = (name) => {
    if (!classes.has(name)) classes.set(name, { total: 0, used: 0, tainted: 0, free: 0, pending: 0 });
    return classes.get(name);
  };
  const add = (count, row) => {
    count.total++;
    if (row.u) count.used++;
    if (row.t) count.tainted++;
    if (row.f) count.free++;
  };
  const all = tally("");
  for (const row of rows) {
    add(all, row);
    for (const name of row.c || NO_CLASS) add(tally(name), row);
  }
  for (const pod of pending) for (const name of pod.classes) tally(name).pending++;
  return [...classes].sort((a, b) => compare(a[0], b[0]));
}

function Filters({ params, by, message }) {
  const [names, setNames] = useState([]);
  useEffect(() => {
    get("attributes").then((data) => setNames(data.names), () => {});
  }, []);
  const devices = useStore((s) => s.devices);
  const arrangement = useStore((s) => s.arrangement);
  const classes = useMemo(() => classesOf(devices.values()), [devices, arrangement]);
  const field = (name, label, hint) => html`<${FilterField} name=${name} label=${label} hint=${hint} value=${params.get(name) || ""} />`;
  return html`
    <form class="filters" role="search" aria-label="Filter devices" onSubmit=${(event) => event.preventDefault()}>
      ${field("text", "Text", "name, node, taint, pod")}
      <label>Class <select name="class" value=${params.get("class") || ""} onChange=${(event) => change({ class: event.target.value })}>
        <option value="">any</option>
        ${classes.map((name) => html`<option value=${name} selected=${name === params.get("class")}>${name}</option>`)}</select></label>
      ${field("cel", "CEL", 'device.driver == "gpu.example.com"')}
      ${field("label", "Node labels", "zone=a")}
      ${field("uuid", "UUID", "GPU-")}
      <label>Group by <select name="group" value=${by} onChange=${(event) => change({ group: event.target.value })}>
        ${["node", "pool", "class", "state"].map((name) => html`<option value=${name} selected=${name === by}>${name}</option>`)}
        ${names.map((name) => html`<option value=${`attribute:${name}`} selected=${`attribute:${name}` === by}>${name}</option>`)}</select></label>
      <label>View <select name="view" value=${params.get("view") || "cells"} onChange=${(event) => change({ view: event.target.value === "table" ? "table" : "" })}>
        <option value="cells">cells</option><option value="table" selected=${params.get("view") === "table"}>table</option></select></label>
      <button type="button" onClick=${() => change({ text: "", class: "", cel: "", label: "", uuid: "", state: "" })}>Clear filters</button>
    </form>
    ${message && html`<p class="problem" role="alert">${message}</p>`}`;
}

function classesOf(rows) {
  const names = new Set();
  for (const row of rows) for (const name of row.c || []) names.add(name);
  return [...names].sort(compare);
}

/** A filter that is typed. What is typed is kept while other things change; Enter applies it. */
function FilterField({ name, label, hint, value }) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  const type = (text) => {
    setDraft(text);
    if (name === "text" || !text) change({ [name]: text.trim() });
  };
  return html`<label>${label}
    <input type="search" name=${name} value=${draft} placeholder=${hint} spellcheck=${false} autocomplete="off"
      onInput=${(event) => type(event.target.value)} onChange=${(event) => change({ [name]: event.target.value.trim() })} /></label>`;
}

function Legend({ rows, params }) {
  useStore((s) => s.revision);
  const counts = {};
  for (const row of rows) counts[row.s] = (counts[row.s] || 0) + 1;
  const chosen = params.get("state") || "";
  return html`<ul class="legend" aria-label="States; select one to filter by it">${Object.entries(STATES).map(([name, { name: title, text }]) => html`
    <li><button type="button" title=${text} aria-pressed=${chosen === name} onClick=${() => change({ state: chosen === name ? "" : name })}>
      <${Mark} state=${name} /> ${title} <span class="count">${counts[name] || 0}</span></button></li>`)}</ul>`;
}

function SelectionBar({ selected, shown, total, rights, select }) {
  const some = selected.size > 0;
  return html`<div class="selection" role="toolbar" aria-label="Selected devices">
    <span role="status">${some ? `${number(selected.size, "device")} selected` : `${shown.length} of ${number(total, "device")} shown`}</span>
    <button type="button" onClick=${() => select(new Set(shown.map((row) => row.d)))} disabled=${!shown.length}>Select all shown</button>
    ${some && html`<button type="button" onClick=${() => select(new Set())}>Clear selection</button>
      ${selected.size === 1 && html`<a class="button" href=${link("device", { id: [...selected][0] })}>Open device</a>`}
      <${ActButtons} devices=${[...selected]} rights=${rights} />`}
  </div>`;
}

function DeviceTable({ rows, selected, select }) {
  const [page, setPage] = useState(0);
  const sorted = useMemo(() => [...rows].sort((a, b) => compare(a.d, b.d)), [rows]);
  const pages = Math.max(1, Math.ceil(sorted.length / PAGE));
  const at = Math.min(page, pages - 1);
  const toggle = (id) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  };
  return html`
    <${Table} caption="Devices" empty="No devices match." columns=${["Select", "Device", "Node", "State", "Taints", "Used by"]}
      rows=${sorted.slice(at * PAGE, (at + 1) * PAGE).map((row) => html`<tr key=${row.d} aria-selected=${selected.has(row.d)}>
        <td><input type="checkbox" aria-label=${`Select ${row.d}`} checked=${selected.has(row.d)} onChange=${() => toggle(row.d)} /></td>
        <td><${DeviceLink} id=${row.d} /></td><td>${row.n}</td><td><${State} state=${row.s} /></td>
        <td>${(row.t || []).join(", ") || "-"}</td><td>${(row.p || []).join(", ") || "-"}</td></tr>`)} />
    ${pages > 1 && html`<nav class="pager" aria-label="Pages of the table">
      <button type="button" disabled=${at === 0} onClick=${() => setPage(at - 1)}>Previous</button>
      <span>Page ${at + 1} of ${pages}</span>
      <button type="button" disabled=${at === pages - 1} onClick=${() => setPage(at + 1)}>Next</button></nav>`}`;
}
