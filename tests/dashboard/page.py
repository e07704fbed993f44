"""A dashboard in the process of a test, in front of a control plane, asked without a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import manifests
from cuts import Wire
from sully.app import RunningControlPlane
from sully.cli.run.dashboard import load_routes
from sully.client.kubeconfig.kubeconfig import find_access
from sully.dashboard.app import PAGE_KEY, Dashboard
from sully.dashboard.sessions import SessionLimits
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock, SystemClock
from sully.testing.cluster import in_process

HOST = "127.0.0.1:8443"
ORIGIN = f"https://{HOST}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the dashboard answered."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Browser:
    """Sends requests as the page in a browser does; a test changes what it is about."""

    app: Any
    cookie: str = ""
    key: str = ""
    """What the page sends together with the cookie."""
    scheme: str = "https"
    address: str = "127.0.0.1"
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its connections close."""
    headers: dict[str, str] = field(
        default_factory=lambda: {"host": HOST, "sec-fetch-site": "same-origin"}
    )

    async def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Read something below /dashboard."""
        return await self._ask(method, path, b"", headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """Change something."""
        sent = {"origin": ORIGIN, "content-type": "application/json", **headers}
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        return await self._ask("POST", path, data, sent)

    async def login(self, **body: str) -> Answer:
        """Begin a session, and keep its cookie."""
        answer = await self.post("/api/login", body)
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        self.key = answer.json.get("key", "")
        return answer

    async def _ask(self, method: str, path: str, data: bytes, headers: Mapping[str, str]) -> Answer:
        sent = {**self.headers, **{name.replace("_", "-"): x for name, x in headers.items()}}
        if self.cookie:
            sent = {"cookie": self.cookie, PAGE_KEY: self.key, **sent}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "scheme": self.scheme,
            "path": f"/dashboard{path}",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
            "server": ("127.0.0.1", 8443),
            "client": (self.address, 50000),
        }
        messages: list[dict[str, Any]] = []
        received: list[bool] = []
        gone = self.gone

        async def receive() -> dict[str, Any]:
            if received:
                await gone.wait()
                return {"type": "http.disconnect"}
            received.append(True)
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        await self.app(scope, receive, send)
        if not messages:
            return Answer(0, {}, b"")
        head = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        return Answer(messages[0]["status"], head, b"".join(x["body"] for x in messages[1:]))


@dataclass(slots=True)
class Page:
    """A dashboard, the control plane behind it, and a browser that has no session yet."""

    plane: RunningControlPlane
    app: Dashboard
    browser: Browser
    wire: Any = None
    """To the control plane, where a test cuts it."""

    async def signed_in(self) -> Browser:
        """Return a browser with a session of the admin."""
        browser = Browser(self.app)
        answer = await browser.login(code=self.app.sessions.new_code())
        assert answer.code == 200, answer.body
        return browser

    async def token(self, name: str, *rules: dict[str, Any]) -> str:
        """Return a token of a new service account that may do this."""
        verbs = self.plane.direct()
        account = {"metadata": {"name": name, "namespace": "default"}}
        await _create(verbs, "", "v1", "serviceaccounts", account, "default")
        group = "rbac.authorization.k8s.io"
        role = {"metadata": {"name": name}, "rules": list(rules)}
        await _create(verbs, group, "v1", "clusterroles", role)
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }
        await _create(verbs, group, "v1", "clusterrolebindings", binding)
        return await self.another_token(name)

    async def set_rules(self, name: str, *rules: dict[str, Any]) -> None:
        """Replace what a service account may do."""
        from sully.client.transport import ResourceRef

        ref = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterroles", "", name)
        body = {"metadata": {"name": name}, "rules": list(rules)}
        await self.plane.direct().call("update", ref, body=body)

    async def create_cluster(self, name: str) -> None:
        """Create a cluster."""
        cluster = manifests.cluster(name, accepted=True)
        group = "cluster.open-cluster-management.io"
        await _create(self.plane.direct(), group, "v1", "managedclusters", cluster)

    async def another_token(self, name: str) -> str:
        """Return a new token of a service account."""
        at, verbs = (name, "token"), self.plane.direct()
        issued = await _create(verbs, "", "v1", "serviceaccounts", {"spec": {}}, "default", at)
        return str(issued["status"]["token"])


async def _create(
    verbs: Any,
    group: str,
    version: str,
    plural: str,
    body: dict[str, Any],
    namespace: str = "",
    at: tuple[str, str] = ("", ""),
) -> dict[str, Any]:
    from sully.client.transport import ResourceRef

    ref = ResourceRef(group, version, plural, namespace, *at)
    reply = await verbs.call("create", ref, body=body)
    return dict(reply.obj)


@asynccontextmanager
async def dashboard(
    clock: Clock | None = None,
    limits: SessionLimits | None = None,
    *,
    wire: Callable[[int], AbstractAsyncContextManager[Any]] = nullcontext,
    gates: Gates | None = None,
    **settings: Any,
) -> AsyncIterator[Page]:
    """Run a dashboard in front of a new control plane; `wire` is what is between them."""
    async with in_process(gates=gates) as plane, wire(urlsplit(plane.url).port or 0) as between:
        access = find_access(str(plane.kubeconfig))
        if isinstance(between, Wire):
            access = replace(access, server=f"https://127.0.0.1:{between.port}")
        async with Dashboard(
            lambda: access, load_routes, clock or SystemClock(), limits=limits, **settings
        ) as app:
            yield Page(plane, app, Browser(app), between)


async def until(answer: Any, right: Any) -> Any:
    """Ask until an answer is right."""
    while True:
        value = await answer()
        if right(value):
            return value
        await asyncio.sleep(0.02)
