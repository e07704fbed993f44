// The page: start of the session, navigation, the notice of stale data, and the current page.
import { useAddress } from "./address.js";
import { backoff, get, post, whenSessionEnds } from "./api.js";
import { When } from "./components.js";
import { connect, disconnect, stayConnected } from "./connection.js";
import { html, render, useEffect, useRef, useState } from "./dom.js";
import { ChartsPage } from "./charts.js";
import { ClustersPage } from "./clusters.js";
import { DevicePage } from "./device.js";
import { EvictionsPage } from "./evictions.js";
import { FleetPage } from "./fleet.js";
import { ExplainPage, LoginPage, OperationsPage } from "./pages.js";
import { PendingPage } from "./pending.js";
import { RulesPage } from "./rules.js";
import { store, useStore } from "./store.js";

const PAGES = {
  fleet: ["Fleet", FleetPage],
  evictions: ["Evictions", EvictionsPage],
  rules: ["Rules", RulesPage],
  pending: ["Pending pods", PendingPage],
  clusters: ["Clusters", ClustersPage],
  charts: ["Charts", ChartsPage],
  operations: ["Operations", OperationsPage],
  device: ["", DevicePage, (params) => params.get("id")],
  explain: ["", ExplainPage, (params) => `${params.get("kind")} ${params.get("name")}`],
};

/** Use the code of a one-time link, and remove it from the address. */
async function redeem() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return "";
  history.replaceState(null, "", "#/fleet");
  try {
    await post("login", { code });
    return "";
  } catch (error) {
    return error.message;
  }
}

function App() {
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState("");
  const [known, setKnown] = useState(false);
  const enter = async (message, failures = 0) => {
    try {
      // Both at the same time: the first picture waits for the stream.
      connect();
      setSession(await get("session"));
      setProblem("");
      stayConnected();
    } catch (error) {
      disconnect();
      setSession(null);
      setProblem(message || (error.status === 401 ? "" : error.message));
      if (error.transient) {
        // There may well be a session.
        setTimeout(() => enter(message, failures + 1), backoff(failures));
        return;
      }
    }
    setKnown(true);
  };
  useEffect(() => {
    redeem().then(enter);
    const codes = () => location.hash.startsWith("#code=") && redeem().then(enter);
    addEventListener("hashchange", codes);
    return whenSessionEnds(() => {
      disconnect();
      setSession((old) => {
        if (old) setProblem("The session has ended. Sign in again.");
        return null;
      });
    });
  }, []);
  if (!known) return html`<main><p class="loading" role="status">Loading the dashboard</p>${problem && html`<p class="problem" role="alert">${problem}</p>`}</main>`;
  if (!session) return html`<${LoginPage} message=${problem} key=${problem} onLogin=${() => enter("")} />`;
  return html`<${Shell} session=${session} leave=${() => post("logout").then(() => { disconnect(); setSession(null); setProblem("You signed out."); }, () => {})} />`;
}

function Shell({ session, leave }) {
  const { page: asked, params } = useAddress();
  const page = Object.hasOwn(PAGES, asked) ? asked : "fleet";
  const [name, Page, subject] = PAGES[page];
  const title = name || subject(params);
  const shown = useRef(title);
  useEffect(() => {
    document.title = `${title} - Sully`;
    // Screen readers read what has the focus: it is on a link that leads to this page, or gone.
    if (shown.current !== title) document.getElementById("main").focus();
    shown.current = title;
  }, [title]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to content</a>
    <header class="top"><span class="brand">Sully</span>
      <nav aria-label="Pages"><ul>${Object.entries(PAGES).filter(([, [name]]) => name).map(([path, [name]]) => html`
        <li><a href=${`#/${path}`} aria-current=${page === path ? "page" : undefined}>${name}</a></li>`)}</ul></nav>
      <span class="who" title=${session.server}>${session.user || "unknown user"}</span>
      <button type="button" onClick=${leave}>Sign out</button></header>
    <${Freshness} />
    <main id="main" tabindex="-1"><${Page} rights=${session.rights} /></main>
    <footer class="bottom">Sully ${session.version}; ${session.server}; the session ends <${When} time=${session.ends} /></footer>`;
}

/** Shows when what is shown may be out of date. */
function Freshness() {
  const hidden = useStore((s) => s.hidden);
  const connected = useStore((s) => s.connected);
  const stale = useStore((s) => s.staleSince);
  const loaded = useStore((s) => s.loaded);
  const failure = useStore((s) => s.failure);
  if (connected && !stale) return hidden.length
    ? html`<div role="status" class="stale">You may not list ${hidden.join(", ")}; what is shown does not include them.</div>`
    : html`<div role="status" class="hidden">${loaded ? "Live" : ""}</div>`;
  const text = stale ? "The API server does not answer." : failure ? `Reconnecting: ${failure}.` : loaded ? "The connection to the dashboard is lost." : "Connecting.";
  return html`<div role="status" class="stale">${text} ${loaded && html`What is shown is stale, since ${stale ? html`<${When} time=${stale} />` : html`<${When} time=${new Date(store.lastHeard).toISOString()} />`}.`}</div>`;
}

render(html`<${App} />`, document.getElementById("app"));
