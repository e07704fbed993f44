// Clusters and placements: health, taints, decisions, and why a cluster is selected or not.
import { ActDialog } from "./act.js";
import { link } from "./address.js";
import { Loaded, Section, Table, Taint } from "./components.js";
import { useData } from "./data.js";
import { html, useState } from "./dom.js";

const KINDS = ["managedclusters", "placements", "placementdecisions"];

export function ClustersPage({ rights }) {
  const state = useData("clusters", {}, KINDS);
  /** What is changed, and what of it. @type {[object, string] | null} */
  const [change, setChange] = useState(null);
  const [asked, ask] = useState({ placement: "", cluster: "" });
  return html`<h1>Clusters and placements</h1>
    <${Loaded} state=${state}>${(data) => !data.served ? html`<p class="note">This server has no managed clusters.</p>` : html`
      <${Section} title="Clusters"><${Table} caption="Managed clusters" empty="There are no clusters." columns=${["Cluster", "Available", "Taints", "Selected by", "Actions"]}
        rows=${data.clusters.map((x) => html`<tr key=${x.name}><th scope="row"><a href=${link("explain", { kind: "cluster", name: x.name })}>${x.name}</a></th>
          <td title=${x.message}>${x.available}</td><td>${x.taints.map((taint) => html`<div><${Taint} taint=${taint} />
            ${rights.taintCluster && html` <button type="button" aria-label=${`Remove ${taint.key}:${taint.effect} from ${x.name}`} onClick=${() => setChange([{ clusters: [x.name], remove: true, key: taint.key, effect: taint.effect }, `cluster ${x.name}`])}>Remove</button>`}</div>`)}</td>
          <td>${x.placements.join(", ") || "-"}</td>
          <td>${rights.taintCluster && html`<button type="button" aria-label=${`Taint ${x.name}`} onClick=${() => setChange([{ clusters: [x.name] }, `cluster ${x.name}`])}>Taint</button>`}</td></tr>`)} /><//>
      <${Section} title="Placements"><${Table} caption="Placements" empty="There are no placements." columns=${["Placement", "Clusters", "Conditions"]}
        rows=${data.placements.map((x) => html`<tr key=${`${x.namespace}/${x.name}`}>
          <th scope="row"><a href=${link("explain", { kind: "placement", name: `${x.namespace}/${x.name}` })}>${x.namespace}/${x.name}</a></th>
          <td>${x.clusters.join(", ") || "-"}${x.wanted ? ` (${x.clusters.length} of ${x.wanted})` : ""}</td>
          <td>${x.conditions.map((c) => html`<div>${c.type}: ${c.status}${c.message ? `, ${c.message}` : ""}</div>`)}</td></tr>`)} />
      ${data.placements.length > 0 && data.clusters.length > 0 && html`<form class="filters" onSubmit=${(event) => { event.preventDefault(); location.hash = link("explain", { kind: "placement", name: asked.placement, cluster: asked.cluster }); }}>
        <label>Why does placement <select value=${asked.placement} onChange=${(event) => ask({ ...asked, placement: event.target.value })}><option value="">choose</option>
          ${data.placements.map((x) => html`<option>${x.namespace}/${x.name}</option>`)}</select></label>
        <label>select or reject cluster <select value=${asked.cluster} onChange=${(event) => ask({ ...asked, cluster: event.target.value })}><option value="">choose</option>
          ${data.clusters.map((x) => html`<option>${x.name}</option>`)}</select></label>
        <button disabled=${!asked.placement || !asked.cluster}>Explain</button></form>`}<//>`}<//>
    ${change && html`<${ActDialog} action="taint-cluster" request=${change[0]} what=${change[1]} rights=${rights}
      onClose=${() => { setChange(null); state.reload(); }} />`}`;
}
