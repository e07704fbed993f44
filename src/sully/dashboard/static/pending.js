// Pods that wait for devices, each with its explanation and what would help.
import { link } from "./address.js";
import { Explanation, Reading, Table } from "./components.js";
import { html, useState } from "./dom.js";
import { useStore } from "./store.js";

export function PendingPage() {
  const pods = useStore((s) => s.pending);
  const loaded = useStore((s) => s.loaded);
  const [open, setOpen] = useState("");
  if (!loaded) return html`<h1>Pending pods</h1><${Reading} />`;
  return html`<h1>Pending pods</h1>
    <${Table} caption="Pods that wait for devices" empty="No pod waits for a device." columns=${["Pod", "Requested classes", "Why"]}
      rows=${pods.map((pod) => {
        const key = `${pod.namespace}/${pod.name}`;
        const shown = open === key;
        return html`<tr key=${key}><th scope="row"><a href=${link("explain", { kind: "pod", name: key })}>${key}</a></th>
            <td>${pod.classes.map((name) => html`<a href=${link("fleet", { class: name })}>${name}</a> `)}</td>
            <td><button type="button" aria-expanded=${shown} aria-label=${`Explain ${key}`} onClick=${() => setOpen(shown ? "" : key)}>${shown ? "Hide" : "Explain"}</button></td></tr>
          ${shown && html`<tr key=${`${key}-why`}><td colspan="3" class="why"><${Explanation} kind="pod" name=${key} /></td></tr>`}`;
      })} />`;
}
