// Change devices: a form, the plan that the server makes for it, the confirmation, the progress.
import { RequestError, get, post } from "./api.js";
import { link } from "./address.js";
import { Table, duration, evicted, number } from "./components.js";
import { useData } from "./data.js";
import { html, useEffect, useRef, useState } from "./dom.js";

const CLUSTER_EFFECTS = ["NoSelect", "PreferNoSelect", "NoSelectIfNew"];
const TITLES = { cordon: "Cordon", drain: "Drain", taint: "Taint", delete: "Delete", "taint-cluster": "Taint" };
const OUTCOMES = { Rescheduled: "rescheduled", Pending: "stay Pending", EvictedAgain: "evicted again", NotReplaced: "not recreated", Unknown: "not known" };

/** Buttons that the viewer may use. @param {{devices: string[], rights: Record<string, boolean>}} props */
export function ActButtons({ devices, rights }) {
  const [action, set] = useState("");
  return html`
    ${rights.taint && html`<button type="button" onClick=${() => set("cordon")}>Cordon</button>`}
    ${rights.taint && rights.change && rights.evict && html`<button type="button" onClick=${() => set("drain")}>Drain</button>`}
    ${rights.taint && html`<button type="button" onClick=${() => set("taint")}>Taint</button>`}
    ${action && html`<${ActDialog} action=${action} request=${{ devices }} rights=${rights} what=${number(devices.length, "device")} onClose=${() => set("")} />`}`;
}

/** @param {{action: string, request: object, what: string, rights: Record<string, boolean>, onClose: () => void}} props */
export function ActDialog({ action, request, what, rights, onClose }) {
  const dialog = useRef(null);
  const [form, setForm] = useState({ flags: {}, effect: action === "taint-cluster" ? "NoSelect" : "NoSchedule", key: "", value: "" });
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState("");
  const [planning, setPlanning] = useState(false);
  const [typed, setTyped] = useState("");
  const [operation, setOperation] = useState(null);
  const [busy, setBusy] = useState(false);
  /** Why the last confirmation failed. A plan is executed once, so another one is made. */
  const [failure, setFailure] = useState({ text: "", count: 0 });
  const needsKey = (action === "taint" || action === "taint-cluster") && !request.remove;
  const complete = !needsKey || form.key.trim() !== "";
  const body = { action, ...form, ...request };
  useEffect(() => dialog.current.showModal(), []);
  useEffect(() => {
    if (operation || !complete) return undefined;
    let alive = true;
    setPlanning(true);
    const timer = setTimeout(async () => {
      try {
        const made = await post("plan", body);
        if (alive) {
          setPlan(made);
          setError("");
        }
      } catch (problem) {
        if (alive) {
          setPlan(null);
          setError(problem.message);
        }
      }
      if (alive) setPlanning(false);
    }, 350);
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [JSON.stringify(form), operation === null, failure.count]);
  const confirm = async (event) => {
    event.preventDefault();
    if (!plan || busy) return;
    setBusy(true);
    try {
      setOperation(await post("apply", { id: plan.id, confirm: typed }));
    } catch (problem) {
      const text = problem instanceof RequestError ? problem.message : String(problem);
      setFailure((old) => ({ text, count: old.count + 1 }));
    }
    setBusy(false);
  };
  const title = request.remove ? `Remove the taint from ${what}` : `${TITLES[action]} ${what}`;
  const ready = plan && !planning && (!plan.type || typed.trim() === String(plan.type.count));
  return html`
    <dialog ref=${dialog} class="act" aria-labelledby="act-title" onClose=${onClose}>
      <header><h2 id="act-title">${title}</h2>
        <button type="button" class="close" aria-label="Close" onClick=${() => dialog.current.close()}>×</button></header>
      ${operation
        ? html`<${Operation} first=${operation} rights=${rights} />`
        : html`<form onSubmit=${confirm}>
            ${action !== "delete" && !request.remove && html`<${Fields} action=${action} form=${form} setForm=${setForm} />`}
            <div class="plan" aria-busy=${planning} aria-live="polite">
              ${!complete && html`<p class="note">Enter a key to see the plan.</p>`}
              ${planning && html`<p class="loading">Planning</p>`}
              ${failure.text && html`<p class="problem" role="alert">${failure.text}</p>`}
              ${error && html`<p class="problem" role="alert">${error}</p>`}
              ${plan && !planning && html`<${Plan} plan=${plan} />`}
            </div>
            ${plan?.type && !planning && html`<label class="confirm">Type the number of ${plan.type.thing} (${plan.type.count}) to continue
              <input name="confirm" value=${typed} inputmode="numeric" autocomplete="off" onInput=${(event) => setTyped(event.target.value)} /></label>`}
            <footer><button type="submit" class="primary" disabled=${!ready || busy}>${title}</button>
              <button type="button" onClick=${() => dialog.current.close()}>Cancel</button></footer>
          </form>`}
    </dialog>`;
}

function Effect({ names, form, setForm }) {
  return html`<label>Effect <select name="effect" value=${form.effect} onChange=${(event) => setForm({ ...form, effect: event.target.value })}>
    ${names.map((name) => html`<option value=${name} selected=${name === form.effect}>${name}</option>`)}</select></label>`;
}

/** The effects that this server stores. */
function DeviceEffect({ form, setForm }) {
  const { data } = useData("effects");
  return html`<${Effect} names=${data?.effects ?? [form.effect]} form=${form} setForm=${setForm} />`;
}

function Fields({ action, form, setForm }) {
  const flag = (name, value) => setForm({ ...form, flags: { ...form.flags, [name]: value } });
  const text = (name, label, hint) => html`<label>${label}
    <input name=${name} value=${form.flags[name] || ""} placeholder=${hint} autocomplete="off" onInput=${(event) => flag(name, event.target.value)} /></label>`;
  const box = (name, label) => html`<label class="check"><input type="checkbox" name=${name} checked=${form.flags[name] || false} onChange=${(event) => flag(name, event.target.checked)} /> ${label}</label>`;
  return html`<div class="fields">
    ${(action === "taint" || action === "taint-cluster") && html`
      <label>Key <input name="key" required value=${form.key} placeholder="example.com/hot" autocomplete="off" spellcheck=${false} onInput=${(event) => setForm({ ...form, key: event.target.value.trim() })} /></label>
      <label>Value <input name="value" value=${form.value} autocomplete="off" spellcheck=${false} onInput=${(event) => setForm({ ...form, value: event.target.value.trim() })} /></label>
      ${action === "taint" ? html`<${DeviceEffect} form=${form} setForm=${setForm} />` : html`<${Effect} names=${CLUSTER_EFFECTS} form=${form} setForm=${setForm} />`}`}
    ${text("reason", "Reason", "for others to see")}
    ${text("for", "Ends after", "2h")}
    ${action === "drain" && html`${text("rate", "Evictions", "1 (per second), 10/m")}
      ${text("timeout", "Timeout", "no timeout")}
      ${box("one-at-a-time", "One at a time")}
      ${box("when-idle", "Wait until pods have finished")}
      ${box("ignore-daemonsets", "Ignore pods of DaemonSets")}
      ${box("force", "Also pods without a controller")}`}
    ${action === "taint" && form.effect.startsWith("NoExecute") && text("rate", "Evictions per second", "10")}
  </div>`;
}

const when = (seconds) => (seconds < 1 ? "immediately" : `after ${duration(seconds)}`);

/** A plan as `sully plan` shows it. */
export function Plan({ plan }) {
  const p = plan.plan;
  const lost = p.notRescheduled;
  return html`
    <h3>Plan</h3>
    ${plan.large && html`<p class="warning">${plan.large}</p>`}
    ${p.evictionLoops.map((loop) => html`<p class="problem" role="alert">Pods of ${loop.owner} in ${loop.namespace} would be evicted again and again: ${loop.message}</p>
      <ul>${loop.remedies.map((text) => html`<li>${text}</li>`)}</ul>`)}
    <p class="headline">${p.subject === "clusters"
      ? `${number(p.placements.length, "placement")} would change.`
      : `${number(p.devices.length, "device")} of ${p.totalDevices} affected. ${plan.caused ? `${number(plan.caused, "pod")} would be evicted.${lost ? ` ${lost} would not be rescheduled.` : " All would be rescheduled."}` : "No pod would be evicted."}`}</p>
    ${plan.owners.length > 0 && html`<${Table} caption="Evicted pods by owner" columns=${["Owner", "Pods", "When", "Then"]}
      rows=${plan.owners.map((owner) => html`<tr><td>${owner.namespace}/${owner.owner}</td><td>${owner.pods}</td>
        <td>${when(owner.first)}${owner.last > owner.first + 1 ? ` to ${duration(owner.last)}` : ""}</td>
        <td>${Object.entries(owner.outcomes).map(([name, count]) => `${count} ${OUTCOMES[name] || name}`).join(", ")}${owner.nodes.length ? ` (${owner.nodes.slice(0, 3).join(", ")}${owner.nodes.length > 3 ? " and others" : ""})` : ""}</td></tr>`)} />`}
    ${p.evictions.filter((e) => !e.withoutChange && e.replacement.message).slice(0, 5).map((e) => html`<p class="note">${e.namespace}/${e.name}: ${e.replacement.message}</p>`)}
    ${p.blockedEvictions.length > 0 && html`<h4>Evictions that are blocked</h4><ul>${p.blockedEvictions.slice(0, 10).map((e) => html`<li>${e.namespace}/${e.name}: ${e.message || "blocked by a PodDisruptionBudget"}</li>`)}</ul>`}
    ${p.brokenBudgets.length > 0 && html`<h4>Budgets that are not honored</h4><ul>${p.brokenBudgets.map((b) => html`<li>${b.namespace}/${b.name}: ${number(b.pods, "pod")} evicted, ${b.allowed} allowed</li>`)}</ul>`}
    ${p.latentEffects.owners.length > 0 && html`<h4>Next pods that would stay Pending</h4><ul>${p.latentEffects.owners.map((o) => html`<li>${o.owner} in ${o.namespace}: ${o.message}</li>`)}</ul>`}
    ${p.placements.length > 0 && html`<${Table} caption="Placements that change" columns=${["Placement", "Before", "After", "Missing"]}
      rows=${p.placements.map((x) => html`<tr><td>${x.placement}</td><td>${x.before.join(", ") || "-"}</td><td>${x.after.join(", ") || "-"}</td><td>${x.missingClusters || 0}</td></tr>`)} />`}
    ${p.classes.length > 0 && html`<${Table} caption="Free devices by class" columns=${["Class", "Free before", "Free after"]}
      rows=${p.classes.filter((c) => c.freeBefore !== c.freeAfter || c.taintedBefore !== c.taintedAfter).map((c) => html`<tr><td>${c.name}</td><td>${c.freeBefore}</td><td>${c.freeAfter}</td></tr>`)} empty="No class loses free devices." />`}
    ${[...plan.notes, ...p.noEffects, ...p.notes].map((text) => html`<p class="note">${text}</p>`)}
    <p class="command">The same in a shell: <code>${plan.command}</code></p>`;
}

const RUNNING = ["running", "paused"];
/** Operations, asked for every second while one of them runs. @param {object[]} first */
export function useOperations(first) {
  const [operations, set] = useState(first);
  const [error, setError] = useState("");
  const running = operations.some((x) => RUNNING.includes(x.state));
  const load = () => get("operations").then((data) => { set(data.operations); setError(""); }, (problem) => setError(problem.message));
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(load, 1000);
    return () => clearInterval(timer);
  }, [running]);
  const replace = (one) => set((old) => old.map((x) => (x.id === one.id ? one : x)));
  return { operations, error, replace };
}

function Operation({ first, rights }) {
  const { operations, error, replace } = useOperations([first]);
  const operation = operations.find((x) => x.id === first.id) || first;
  const box = useRef(null);
  // The button that was pressed is gone, and with it the focus.
  useEffect(() => box.current.focus(), []);
  return html`<div ref=${box} tabindex="-1">${error && html`<p class="problem" role="alert">${error}</p>`}<${Progress} operation=${operation} replace=${replace} rights=${rights} /></div>`;
}

/** How far an operation is, with what can be done about it. */
export function Progress({ operation, replace, rights }) {
  const [error, setError] = useState("");
  const control = async (verb) => {
    try {
      replace(await post("operation", { id: operation.id, verb }));
      setError("");
    } catch (problem) {
      setError(problem.message);
    }
  };
  const running = operation.state === "running";
  const undone = operation.state === "undone";
  const pausable = rights.change && (operation.action === "drain" ? rights.evict : operation.pausable);
  return html`<div class="progress">
    <p role="status"><strong>${operation.state}</strong></p>
    ${operation.evictions.map((x) => html`<p>${x.rule}: ${evicted(x)} evicted, ${x.pending ?? 0} pending${x.terminating ? `, ${x.terminating} terminating` : ""} (${x.state})
      <progress max=${(x.evicted ?? 0) + (x.pending ?? 0) || 1} value=${x.evicted ?? 0} aria-label=${`Evictions of ${x.rule}`}></progress></p>`)}
    ${operation.lines.length > 0 && html`<pre tabindex="0" aria-label="Output">${operation.lines.join("\n")}</pre>`}
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    <footer>
      ${running && pausable && html`<button type="button" onClick=${() => control("pause")}>Pause</button>`}
      ${["paused", "stopped", "failed"].includes(operation.state) && pausable && html`<button type="button" onClick=${() => control("resume")}>Resume</button>`}
      ${operation.rules.length > 0 && !undone && rights.untaint && html`<button type="button" onClick=${() => control("undo")}>Undo</button>`}
      <a href=${link("operations")}>All operations</a>
    </footer>
  </div>`;
}
