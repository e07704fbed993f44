"""A Kubernetes API server to test against, which is not ours, but built from our server's parts.

It has what a Kubernetes server of some minor version has and nothing of Sully's: no fields, kinds
or pages of ours, its own version, its own evictor, custom resource definitions. Where the real one
differs from what our reference mode serves we cannot know; what Sully relies on is here.

python -m kube.server --data-dir D --minor 33 --devices v1beta1 --rules v1alpha3
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
from dataclasses import dataclass
from email.utils import format_datetime
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from kube.services import add_services
from sully.api import build_scheme
from sully.app import ADMIN, controller_access
from sully.client.calls import Calls
from sully.client.discovery.capabilities import EVICTOR_ROLE as EVICTOR
from sully.client.discovery.capabilities import RelocatedTransport, relocated
from sully.client.discovery.resources import of_scheme
from sully.client.kubeconfig.writing import Login, kubeconfig, write_kubeconfig
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.framework.manager import Manager
from sully.domain.capabilities.duties import OF_KUBERNETES
from sully.domain.capabilities.offers import DEVICES, HUB
from sully.machinery.compat import Compat
from sully.machinery.gates import OURS, Gates, parse_gates
from sully.machinery.scheme import Scheme
from sully.machinery.serialization.codec import to_json
from sully.machinery.strategy import ResourceType
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics, publish_gates
from sully.server.api import Api, Env
from sully.server.authentication import reviews
from sully.server.authentication.authenticator import Authenticator
from sully.server.authentication.groups import MASTERS
from sully.server.authentication.keys import SigningKey
from sully.server.authentication.service_accounts import TokenAuthenticator
from sully.server.authentication.token_requests import Issuer
from sully.server.authorization.policy.builders import RBAC
from sully.server.bootstrap import ensure_namespaces, ensure_policy
from sully.server.customresources.controller import DefinitionController
from sully.server.flowcontrol.limits import Limits
from sully.server.http.access import AccessControl
from sully.server.http.app import HttpApp
from sully.server.http.metrics import RequestCounter
from sully.server.inprocess import InProcess
from sully.server.net.issuing import ServerCertificate
from sully.server.net.listen import Listener, bind, tls_context
from sully.server.net.tls import Authority
from sully.server.requests import ResourceRef
from sully.store.memory import MemoryStore

RULE = "DeviceTaintRule"
SCHEDULER = frozenset(("default-scheduler",))
PLURALS = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
NOT_THERE = (HUB, "sully.dev")


@dataclass(frozen=True, kw_only=True)
class Offered:
    """What sets one server apart from another."""

    minor: int = 37
    devices: tuple[str, ...] = ("v1", "v1beta2", "v1beta1")
    rules: tuple[str, ...] = ("v1", "v1beta2", "v1alpha3")
    evictor: bool = True
    """Whether its own evictor is at work, and has its role."""
    gates: str = ""
    """Its feature gates, as the flag has them."""


def scheme_of(offered: Offered) -> Scheme:
    """Return the kinds of such a server."""
    # What Kubernetes does not have is left out of the tables, so it is dropped on a write.
    result, scheme = build_scheme(Compat.KUBERNETES), Scheme()
    scheme.tables = result.tables
    for resource in result.resources():
        if resource.group not in NOT_THERE:
            scheme.add(_in_versions(resource, offered))
    add_services(scheme)
    return scheme


def _in_versions(resource: ResourceType, offered: Offered) -> ResourceType:
    if resource.group != DEVICES:
        return resource
    served = offered.rules if resource.kind == RULE else offered.devices
    versions = (replace(version, enabled=version.name in served) for version in resource.versions)
    return replace(resource, versions=tuple(versions))


class Server:
    """The ASGI application: that of our server, except that it reports another version."""

    def __init__(
        self, api: Api, access: AccessControl, clock: Clock, gates: Gates, offered: Offered
    ) -> None:
        metrics = Metrics()
        publish_gates(metrics, gates, without=OURS)
        self._app = HttpApp(api, clock, RequestCounter(metrics), access)
        version = f"v1.{offered.minor}.2"
        reported = {"major": "1", "minor": str(offered.minor), "gitVersion": version}
        self._version = to_json(reported)
        self._clock = clock

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"].rstrip("/") != "/version":
            await self._app(scope, receive, send)
            return
        now = self._clock.now().replace(microsecond=0)
        headers = [
            (b"content-type", b"application/json"),
            (b"date", format_datetime(now, usegmt=True).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._version})


def access_control(api: Api, folder: Path, clock: Clock) -> AccessControl:
    """Return the authenticator, for certificates and for tokens of service accounts."""
    key = SigningKey.open(folder)
    accounts = TokenAuthenticator(key, api.writer.lookup, clock)
    api.connector.add("serviceaccounts", "token", Issuer(key, api.writer, max_seconds=0).issue)
    api.virtual.add(reviews.GROUP, "tokenreviews", reviews.review_tokens(accounts))
    api.virtual.add(reviews.GROUP, "selfsubjectreviews", reviews.who_am_i(clock))
    allowed = Authenticator(clock, accounts)
    return AccessControl(allowed, api.authorizer, Limits(), clock, api.writer.ids, anonymous=True)


def manager_of(api: Api, gates: Gates, clock: Clock, offered: Offered) -> Manager:
    """Return the controllers of Kubernetes: its manager, its scheduler, and perhaps its evictor."""
    more = {"eviction", "scheduling"} if offered.evictor else {"scheduling"}
    moved: dict[tuple[str, str], tuple[str, str]] = {
        (DEVICES, plural): (DEVICES, offered.devices[0]) for plural in PLURALS
    }
    if offered.rules:
        moved[DEVICES, "devicetaintrules"] = (DEVICES, offered.rules[0])
    served = of_scheme(api.scheme)
    flags = ControllerConfig(
        transport=lambda name: RelocatedTransport(
            cast("Calls", controller_access(api, name)), moved
        ),
        served=relocated(served, moved),
        gates=gates,
        ids=Ids(),
        compat=Compat.KUBERNETES,
        chosen=OF_KUBERNETES | more,
        schedulers=SCHEDULER,
    )
    return build_manager(flags, clock, Metrics())


async def furnish(api: Api, gates: Gates, offered: Offered) -> None:
    """Make what every cluster has from the start."""
    await api.definitions.start()
    await api.authorizer.start()
    await api.devices.start()
    admin = InProcess(api, ADMIN)
    await ensure_namespaces(admin)
    await ensure_policy(admin, gates)
    if not offered.evictor and gates["DRADeviceTaints"]:
        # As where device taints are switched off: the server does not even make its role.
        for plural in ("clusterroles", "clusterrolebindings"):
            await admin.call("delete", ResourceRef(RBAC, "v1", plural, name=EVICTOR.name))


async def run(folder: Path, offered: Offered) -> None:
    """Serve until SIGINT or SIGTERM."""
    clock, gates = SystemClock(), parse_gates(offered.gates, Compat.KUBERNETES)
    env = Env(clock, Ids(), random.Random())
    scheme = scheme_of(offered)
    store = MemoryStore()
    api = Api(scheme=scheme, store=store, env=env, gates=gates, compat=Compat.KUBERNETES)
    await furnish(api, gates, offered)
    authority = Authority.open(folder, clock.now())
    serving = ServerCertificate(folder, authority, ("127.0.0.1", "localhost"))
    serving.ensure(clock.now())
    context = tls_context(serving.certificate, serving.key, authority.pair.certificate)
    app = Server(api, access_control(api, folder, clock), clock, gates, offered)
    listener = Listener(app, bind("127.0.0.1", 0), context)
    await listener.start()
    url = f"https://127.0.0.1:{listener.port}"
    _write_login(folder / "kubeconfig", url, authority, clock)
    manager = manager_of(api, gates, clock, offered)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, manager.stop)
    async with asyncio.TaskGroup() as tasks:
        serving_requests = tasks.create_task(listener.serve())
        access = InProcess(api, ADMIN, agent="kube-apiserver")
        definitions = DefinitionController(store, api.definitions, access, clock)
        establishing = tasks.create_task(definitions.run())
        controlling = tasks.create_task(manager.run())

        async def forget_versions() -> None:
            await store.compact(store.revision)
            api.watcher.stop()
            api.watcher.stopping.clear()

        loop.add_signal_handler(
            signal.SIGUSR1, lambda: tasks.create_task(forget_versions()) and None
        )
        await manager.settled()
        sys.stdout.write(f"ready: {url}\n")
        sys.stdout.flush()
        await controlling
        establishing.cancel()
        api.watcher.stop()
        listener.stop()
        await serving_requests


def _write_login(path: Path, url: str, authority: Authority, clock: Clock) -> None:
    pair = authority.client(ADMIN.name, [MASTERS], clock.now())
    login = Login(
        server=url,
        ca=authority.pair.certificate,
        user=ADMIN.name,
        certificate=pair.certificate,
        key=pair.key,
    )
    write_kubeconfig(path, kubeconfig(login))


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def main() -> None:
    """Read the flags and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--minor", type=int, default=37)
    parser.add_argument("--devices", type=_names, default=Offered.devices)
    parser.add_argument("--rules", type=_names, default=Offered.rules)
    parser.add_argument("--no-evictor", dest="evictor", action="store_false")
    parser.add_argument("--feature-gates", dest="gates", default="")
    flags = vars(parser.parse_args())
    folder = flags.pop("data_dir")
    asyncio.run(run(folder, Offered(**flags)))


if __name__ == "__main__":
    main()
