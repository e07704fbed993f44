// Pages that need little: an explanation, operations, and the start of a session.
import { Progress, useOperations } from "./act.js";
import { useAddress } from "./address.js";
import { post } from "./api.js";
import { Explanation, Loaded, Section, When } from "./components.js";
import { useData } from "./data.js";
import { History } from "./device.js";
import { html, useState } from "./dom.js";

const RECORDED = ["pod", "rule", "cluster", "node", "device"];

export function ExplainPage() {
  const { params } = useAddress();
  const kind = params.get("kind") || "", name = params.get("name") || "", cluster = params.get("cluster") || "";
  return html`<h1 class="name">${kind} ${name}</h1>
    <${Explanation} kind=${kind} name=${name} cluster=${cluster} />
    ${RECORDED.includes(kind) && html`<${Past} kind=${kind} name=${name} />`}`;
}

function Past({ kind, name }) {
  const state = useData("history", { kind, name }, ["taintrecords"]);
  return html`<${Section} title="Timeline"><${Loaded} state=${state}>${(data) => html`<${History} data=${data} />`}<//><//>`;
}

export function OperationsPage({ rights }) {
  const state = useData("operations", {}, ["devicetaintrules"]);
  return html`<h1>Operations</h1><p class="note">What was started from this dashboard. Rules and evictions of others are on their pages.</p>
    <${Loaded} state=${state}>${(data) => data.operations.length === 0 ? html`<p class="empty">None.</p>`
      : html`<${Operations} key=${data.operations.map((x) => x.id).join()} first=${data.operations} rights=${rights} />`}<//>`;
}

function Operations({ first, rights }) {
  const { operations, error, replace } = useOperations(first);
  return html`${error && html`<p class="problem" role="alert">${error}</p>`}
    ${operations.map((x) => html`<section key=${x.id}><h2>${x.action} <small><${When} time=${x.began} /></small></h2>
      <p class="command"><code>${x.command}</code></p><${Progress} operation=${x} replace=${replace} rights=${rights} /></section>`)}`;
}

export function LoginPage({ message, onLogin }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState(message);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await post("login", { token });
      setToken("");
      onLogin();
    } catch (problem) {
      setError(problem.message);
    }
  };
  return html`<main class="login"><h1>Sully</h1>
    <p>Open the link that <code>sully up</code> or <code>sully dashboard</code> prints, or paste a token. You see and change what the rights of that user allow.</p>
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    <form onSubmit=${submit}><label>Token <input type="password" name="token" required autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} /></label>
      <button class="primary">Sign in</button></form>
    <p class="note"><code>kubectl create token NAME</code> creates a token of a service account.</p></main>`;
}
