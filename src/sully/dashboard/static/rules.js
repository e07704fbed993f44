// What taints devices: rules, patches and drivers, the policies that create rules, and planned work.
import { ActDialog } from "./act.js";
import { link } from "./address.js";
import { Loaded, Section, Table, Taint, When, number } from "./components.js";
import { useData } from "./data.js";
import { html, useState } from "./dom.js";

const KINDS = ["devicetaintrules", "resourceslicepatches", "resourceslices", "devicetaintpolicies", "devicemaintenances", "pods"];

export function RulesPage({ rights }) {
  const state = useData("rules", {}, KINDS);
  const [deleting, setDeleting] = useState(null);
  return html`<h1>Rules and policies</h1>
    <${Loaded} state=${state}>${(data) => html`
      <${Section} title="What taints devices">
        <${Table} caption="Sources of taints" empty="No device is tainted." columns=${["Source", "Taint", "State", "Devices", "Pods to evict", "Since", "Ends", "Created by", "Reason", "Actions"]}
          rows=${data.sources.map((x) => html`<tr key=${`${x.kind}/${x.name}/${x.taint.key}`}>
            <th scope="row">${x.kind === "rule" ? html`<a href=${link("explain", { kind: "rule", name: x.objects[0] })}>rule ${x.name}</a>` : `${x.kind} ${x.name}`}</th>
            <td><${Taint} taint=${x.taint} /></td><td>${x.state}</td><td>${x.deviceCount ?? 0}</td><td>${(x.pending || []).length}</td>
            <td><${When} time=${x.timeAdded} /></td><td><${When} time=${x.endTime} /></td><td>${x.createdBy || "-"}</td><td>${x.description || "-"}</td>
            <td>${rights.untaint && x.kind === "rule" && html`<button type="button" aria-label=${`Delete ${x.name}`} onClick=${() => setDeleting(x.objects)}>Delete</button>`}</td></tr>`)} /><//>
      <${Section} title="Device policies">
        <${Table} caption="Device policies" empty="There are no device policies." columns=${["Policy", "Mode", "Taint", "Effects", "Devices", "Faulty", "Unavailable", "Next action", "Created by"]}
          rows=${data.policies.map((x) => html`<tr><th scope="row"><a href=${link("explain", { kind: "policy", name: x.name })}>${x.name}</a></th><td>${x.mode}</td><td><code class="taint">${x.taint}</code></td><td>${x.steps || "-"}</td>
            <td>${x.selected ?? 0}</td><td>${x.faulty ?? 0}</td><td>${x.unavailable ?? 0}</td><td>${x.stormSince ? "storm" : html`<${When} time=${x.nextActionTime} />`}</td><td>${x.createdBy || "-"}</td></tr>`)} /><//>
      <${Section} title="Maintenance">
        <${Table} caption="Planned work on devices" empty="No work on devices is planned." columns=${["Maintenance", "Phase", "Begins", "Ends", "Devices", "Done", "Next action", "Created by", "Reason"]}
          rows=${data.maintenances.map((x) => html`<tr><th scope="row"><a href=${link("explain", { kind: "maintenance", name: x.name })}>${x.name}</a></th><td>${x.phase || "-"}</td>
            <td><${When} time=${x.start} /></td><td><${When} time=${x.end} /></td><td>${x.selected ?? 0}</td><td>${x.done ?? 0} of ${x.total ?? 0}</td><td><${When} time=${x.nextActionTime} /></td><td>${x.createdBy || "-"}</td><td>${x.reason || "-"}</td></tr>`)} /><//>`}<//>
    ${deleting && html`<${ActDialog} action="delete" request=${{ rules: deleting }} what=${number(deleting.length, "rule")} rights=${rights}
      onClose=${() => { setDeleting(null); state.reload(); }} />`}`;
}
