// Evictions that run, with pauses, and past ones.
import { link } from "./address.js";
import { post } from "./api.js";
import { Loaded, PodLink, Section, Table, Taint, When, evicted } from "./components.js";
import { useData } from "./data.js";
import { History } from "./device.js";
import { html, useState } from "./dom.js";

const KINDS = ["devicetaintrules", "pods", "resourceclaims", "taintrecords"];

export function EvictionsPage({ rights }) {
  const state = useData("evictions", {}, KINDS);
  const past = useData("history", {}, ["taintrecords"]);
  const [error, setError] = useState("");
  const pause = async (verb, rule) => {
    try {
      await post("pause", { verb, rules: [rule] });
      setError("");
      state.reload();
    } catch (problem) {
      setError(problem.message);
    }
  };
  return html`<h1>Evictions</h1>
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    <${Section} title="Running"><${Loaded} state=${state}>${(data) => html`
      <${Table} caption="Rules that evict pods" empty="No rule evicts pods." columns=${["Rule", "Taint", "State", "Pending", "Evicted", "Finishes", "Created by", "Reason", "Actions"]}
        rows=${data.evictions.map((x) => html`<tr key=${x.rule}>
          <th scope="row"><a href=${link("explain", { kind: "rule", name: x.rule })}>${x.rule}</a></th><td><${Taint} taint=${x.taint} /></td><td>${x.state}</td>
          <td>${x.pending ?? "?"}${(x.pods || []).slice(0, 5).map((pod) => html`<div><${PodLink} ...${pod} /></div>`)}</td>
          <td>${evicted(x)}</td><td><${When} time=${x.finishTime} /></td>
          <td>${x.createdBy || "-"}</td><td>${x.description || "-"}</td>
          <td>${rights.change && (data.pausable || x.paused !== undefined) && (x.paused === undefined
            ? html`<button type="button" aria-label=${`Pause ${x.rule}`} onClick=${() => pause("pause", x.rule)}>Pause</button>`
            : html`<button type="button" aria-label=${`Resume ${x.rule}`} onClick=${() => pause("resume", x.rule)}>Resume</button>`)}</td></tr>`)} />`}<//><//>
    <${Section} title="Past"><${Loaded} state=${past}>${(data) => html`<${History} data=${data} />`}<//><//>`;
}
