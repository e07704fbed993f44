"""Controllers whose connection fails: they report it, evict no pod meanwhile, and continue."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import manifests
from controllers.test_foreign_plane import CLAIMS, PODS, RULES, furnish, placed, taint
from cuts import Wire, wire_to
from manifests import claim_spec, pod_spec
from sully.app import Config, running
from sully.client.direct import DirectTransport
from sully.client.http.transport import HttpTransport
from sully.client.informers.informer import Informer
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.client.transport import Key, Kind
from sully.remote import Remote, RemoteConfig, remote
from sully.runtime.clock import SystemClock
from sully.testing.clock import FakeClock
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]
TOLERATED = 300
CONFIG_MAPS: Kind[Obj] = Kind("", "v1", "configmaps", "ConfigMap", dict)


@dataclass
class Beside:
    """Controllers, the server, and the wire between them; only time stands still."""

    api: DirectTransport
    remote: Remote
    wire: Wire
    clock: FakeClock

    def page(self, name: str) -> tuple[int, str]:
        code, text = self.remote.pages()[name]()
        return code, text.decode()

    @property
    def followed(self) -> set[str]:
        """Return the collections that the controllers follow."""
        watches = re.findall(r'informer_watches_total{resource="(\w+)', self.page("/metrics")[1])
        return set(watches)

    @property
    def broken(self) -> set[str]:
        """Return those of which they know that they cannot follow them now."""
        return set(re.findall(r"^(\w+): https://", self.page("/readyz")[1], re.MULTILINE))

    async def until(self, done: Callable[[], bool], *, passing: float = 0.0) -> None:
        """Wait for something to become true, with time passing if that is what it takes."""
        never = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(PATIENCE):
            while not done():
                self.clock.advance(passing)
                await asyncio.wait([never], timeout=0.02)

    async def terminating(self) -> bool:
        pod = await self.api.get(PODS, Key("team", "p"))
        return "deletionTimestamp" in pod["metadata"]

    async def gone(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await self.terminating():
                await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.02)


@asynccontextmanager
async def beside(folder: Path) -> AsyncIterator[Beside]:
    # Certificates are real, so time must begin where they hold.
    clock = FakeClock(SystemClock().now())
    alone = Config(data_dir=folder, port=0, store="memory", controllers=frozenset())
    async with running(alone, clock) as plane:
        access = load_kubeconfig([plane.kubeconfig], required=True).access()
        async with wire_to(int(access.server.rpartition(":")[2])) as wire:
            config = RemoteConfig(
                access=replace(access, server=f"https://127.0.0.1:{wire.port}"),
                leader_elect=False,
                controllers=frozenset(("eviction", "scheduling")),
            )
            async with remote(config, clock) as result, asyncio.TaskGroup() as tasks:
                ran = tasks.create_task(result.manager.run())
                await result.manager.settled()
                try:
                    yield Beside(DirectTransport(plane.direct()), result, wire, clock)
                finally:
                    result.manager.stop()
                    while not ran.done():
                        clock.advance(1)
                        await asyncio.wait([ran], timeout=0.05)


async def threatened(api: DirectTransport) -> None:
    """Make a pod that must be evicted, and wait until the controllers know."""
    await furnish(api)
    toleration = {
        "key": "example.com/broken",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": TOLERATED,
    }
    spec = claim_spec(tolerations=[toleration])
    await api.create(CLAIMS, manifests.body("ResourceClaim", "p", spec, namespace="team"))
    await api.create(PODS, manifests.pod("p", pod_spec("p"), namespace="team"))
    await placed(api, "p")
    await taint(api, "gpu-0")
    await noticed(api)


async def noticed(api: DirectTransport) -> None:
    """Wait until the status of the rule reports a pending pod."""
    async with asyncio.timeout(PATIENCE):
        async for event in api.watch(RULES):
            reported = (event.object or {}).get("status", {}).get("conditions", [])
            if any(message["type"] == "EvictionInProgress" for message in reported):
                return


OUTAGES: dict[str, Callable[[Wire], None]] = {
    "the connection breaks": Wire.cut,
    "the connection is dead and not closed": lambda wire: setattr(wire, "stalled", True),
}


@pytest.mark.parametrize("fail", OUTAGES.values(), ids=OUTAGES.keys())
async def test_what_was_taken_back_meanwhile_evicts_nobody(
    tmp_path: Path, fail: Callable[[Wire], None]
) -> None:
    with capture_logs() as lines:
        async with beside(tmp_path) as here:
            await threatened(here.api)
            assert here.page("/readyz")[0] == 200
            fail(here.wire)
            await here.api.delete(RULES, Key("", "out"))
            here.clock.advance(TOLERATED + 1)
            await here.until(lambda: "unconfirmed_pods 1.0" in here.page("/metrics")[1])
            during = await here.terminating()
            # Whatever hung on the old line ends with it.
            here.wire.cut()
            await here.until(lambda: here.followed <= here.broken)
            standing = here.page("/readyz")[0]
            here.wire.mend()
            await here.until(lambda: here.page("/readyz")[0] == 200, passing=1)
            await here.until(lambda: "unconfirmed_pods 0.0" in here.page("/metrics")[1], passing=1)
            after = await here.terminating()
            # They work: the next rule has its effect.
            await taint(here.api, "gpu-0")
            await noticed(here.api)
            here.clock.advance(TOLERATED + 1)
            await here.gone()
            numbers = here.page("/metrics")[1]

    assert (during, after) == (False, False)
    assert standing == 503
    pods = 'resource="pods",selector="",type="Pod"'
    watched = f"sully_informer_watches_total{{{pods}}}"
    assert float(numbers.partition(watched)[2].split()[0]) >= 2
    loud = [line["event"] for line in lines if line["log_level"] != "debug"]
    # The first that notices reports it, for all.
    assert loud[0] in ("failed to list or watch", "reconcile failed")
    assert loud[1:] == ["server is reachable again"]


async def test_a_dead_watch_is_noticed_because_no_event_arrives(tmp_path: Path) -> None:
    alone = Config(data_dir=tmp_path, port=0, store="memory", controllers=frozenset())
    async with running(alone) as plane, asyncio.timeout(PATIENCE):
        access = load_kubeconfig([plane.kubeconfig], required=True).access()
        api = DirectTransport(plane.direct())
        async with wire_to(int(access.server.rpartition(":")[2])) as wire:
            far = replace(access, server=f"https://127.0.0.1:{wire.port}")
            async with HttpTransport(far, stall_seconds=0.5, request_seconds=5) as http:
                informer = Informer(http, CONFIG_MAPS, clock=SystemClock())
                seen = asyncio.Event()
                following = asyncio.ensure_future(informer.run())
                await informer.wait_synced()
                wire.stalled = True
                key = Key("default", "m")
                informer.on_change(lambda *_: seen.set() if informer.get(key) else None)
                meta = {"namespace": "default", "name": "m"}
                await api.create(CONFIG_MAPS, {"metadata": meta})
                await wire.swallowed.wait()
                wire.stalled = False
                # Nothing is closed and nobody helps: the watch is opened again where it was.
                await seen.wait()
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    assert informer.get(key) is not None
