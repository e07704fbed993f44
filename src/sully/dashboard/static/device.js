// The page of one device: attributes with their sources, taints, users, history, candidates.
import { ActButtons } from "./act.js";
import { link, useAddress } from "./address.js";
import { Explanation, Loaded, PodLink, Section, State, Table, Taint, When } from "./components.js";
import { useData } from "./data.js";
import { html } from "./dom.js";
import { useStore } from "./store.js";

const origin = (item) => (item.origin ? `${item.origin.kind} ${item.origin.name}` : "driver");

export function DevicePage({ rights }) {
  const id = useAddress().params.get("id") || "";
  const shown = useStore((s) => s.devices.get(id)?.s);
  const node = useStore((s) => s.devices.get(id)?.n);
  const state = useData("device", { id }, ["resourceslices", "devicetaintrules", "resourceclaims", "pods", "resourceslicepatches"]);
  return html`
    <p><a href="#/fleet">Fleet</a></p>
    <h1 class="name">${id}</h1>
    <p class="facts">${shown && html`<${State} state=${shown} />`} ${node && html`node <a href=${link("fleet", { text: node })}>${node}</a>`}</p>
    <div class="toolbar"><${ActButtons} devices=${[id]} rights=${rights} /></div>
    <${Loaded} state=${state}>${(device) => html`
      <${Taints} device=${device} />
      <${Users} device=${device} />
      <${Attributes} device=${device} />
      <${Candidates} device=${device} />`}<//>
    <${Timeline} id=${id} />
    <${Section} title="Explanation"><${Explanation} kind="device" name=${id} /><//>`;
}

function Taints({ device }) {
  return html`<${Section} title="Taints"><${Table} caption="Taints" empty="No taints." columns=${["Taint", "Source", "Created by", "Reason", "Added", "Ends"]}
    rows=${device.taints.map((taint) => {
      const source = device.origins[taint.origin.name] || {};
      return html`<tr><td><${Taint} taint=${taint} />${taint.paused !== undefined && html` <em>paused</em>`}</td>
        <td>${taint.origin.kind === "DeviceTaintRule" ? html`<a href=${link("explain", { kind: "rule", name: taint.origin.name })}>rule ${taint.origin.name}</a>` : origin(taint)}</td>
        <td>${source.createdBy || "-"}</td><td>${taint.description || source.description || "-"}</td>
        <td><${When} time=${taint.timeAdded} /></td><td><${When} time=${taint.endTime} /></td></tr>`;
    })} /><//>`;
}

function Users({ device }) {
  return html`<${Section} title="Used by">
    ${device.obstacle && html`<p class="note">${device.obstacle.message}</p>`}
    ${device.conflict && html`<p class="problem">Allocated to claims that cannot all use it.</p>`}
    <${Table} caption="Claims and pods" empty="Not in use." columns=${["Claim", "Pods", "Eviction"]}
      rows=${device.users.map((user) => html`<tr><td>${user.claim.namespace}/${user.claim.name}</td>
        <td>${(user.pods || []).map((pod) => html`<div><${PodLink} ...${pod} /></div>`)}</td>
        <td>${user.evictionTime ? html`<${When} time=${user.evictionTime} />` : "-"}</td></tr>`)} /><//>`;
}

function Attributes({ device }) {
  const attributes = Object.entries(device.attributes || {}).map(([name, item]) => html`<tr><th scope="row">${name}</th>
    <td>${item.removed ? "(removed)" : String(item.value)}</td><td>${origin(item)}</td></tr>`);
  const capacity = Object.entries(device.capacity || {}).map(([name, item]) => html`<tr><th scope="row">${name}</th>
    <td>${item.value}${item.left !== undefined ? ` (${item.left} left)` : ""}</td><td>${origin(item)}</td></tr>`);
  return html`<${Section} title="Attributes and capacity">
    <p>Classes: ${device.classes.length ? device.classes.map((name) => html`<a href=${link("fleet", { class: name })}>${name}</a> `) : "none"}</p>
    <${Table} caption="Attributes and capacity" columns=${["Name", "Value", "Source"]} rows=${[...attributes, ...capacity]} /><//>`;
}

function Candidates({ device }) {
  const classes = device.classes;
  return html`<${Section} title="Who could run here">
    <p>${classes.length ? html`Pods that request ${classes.length > 1 ? "one of the classes" : "the class"} ${classes.map((name, at) => html`${at ? ", " : ""}<a href=${link("fleet", { class: name })}>${name}</a>`)}.` : "No class selects this device, so no request can get it."}</p>
    <${Table} caption="Pending pods that request such a device" empty="No pending pod requests such a device." columns=${["Pod", "Request", "Class", "Could get it now"]}
      rows=${device.candidates.map((pod) => html`<tr><td><${PodLink} ...${pod} /></td><td>${pod.request || "-"}</td><td>${pod.deviceClass || "-"}</td>
        <td>${pod.fits ? `yes${pod.count === 1 ? "" : `, as one of ${pod.count === null ? "all" : pod.count} devices that it requests`}` : `no: ${pod.reason}`}</td></tr>`)} />
    ${device.unjudged > 0 && html`<p class="note">${device.unjudged} more pending pods request such a device.</p>`}<//>`;
}

function Timeline({ id }) {
  const state = useData("history", { kind: "device", name: id }, ["devicetaintrules", "taintrecords"]);
  return html`<${Section} title="Timeline"><${Loaded} state=${state}>${(data) => html`<${History} data=${data} />`}<//><//>`;
}

/** Past taints and evictions. */
export function History({ data }) {
  return html`${data.message && html`<p class="note">${data.message}</p>`}
    <${Table} caption="Past taints and evictions" empty="No records found." columns=${["Time", "Event", "Object", "By", "Details"]}
      rows=${data.history.map((entry) => html`<tr><td><${When} time=${entry.time} /></td><td>${entry.event}</td>
        <td>${entry.pod ? html`pod <${PodLink} namespace=${entry.pod.namespace} name=${entry.pod.name} />` : entry.rule ? html`rule <a href=${link("explain", { kind: "rule", name: entry.rule })}>${entry.rule}</a>` : entry.cluster ? html`cluster <a href=${link("explain", { kind: "cluster", name: entry.cluster })}>${entry.cluster}</a>` : "-"}</td>
        <td>${entry.by || "-"}</td><td>${details(entry)}</td></tr>`)} />`;
}

const taintText = (taint) => `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;
const causeText = (cause) => `${taintText(cause)} of ${cause.kind === "DeviceTaintRule" ? "rule" : cause.kind} ${cause.name}`;

function details(entry) {
  const parts = [...new Set((entry.causes || []).map(causeText))];
  if (entry.taint) parts.push(taintText(entry.taint));
  if (entry.change) parts.push(entry.change);
  if (entry.reason) parts.push(entry.reason);
  if (entry.devices) parts.push([].concat(entry.devices).join(", "));
  if (entry.pod?.node) parts.push(`from node ${entry.pod.node}`);
  return parts.join("; ") || "-";
}
