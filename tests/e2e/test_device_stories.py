"""What people do with bad devices, on simulated nodes."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import manifests
from e2e.beside import SHORT
from e2e.beside import plane as controlled
from e2e.cluster import (
    DRIVER,
    RESOURCE,
    Cluster,
    Obj,
    claim,
    deployment,
    devices,
    pod,
    rule,
    template,
    tolerate,
)
from kube.control_plane import poll
from monitor.gpus import fresh_pynvml, recorded
from monitor.world import FAST
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import find_access
from sully.domain.health.gpus import GpuMonitor, Settings
from sully.monitor.agent import Agent
from sully.monitor.nvml import Nvml
from sully.runtime.clock import SystemClock
from sully.testing.cluster import Process
from sully.testing.nvml import FakeNvml

pytestmark = pytest.mark.e2e
SIMULATED_NODES = ("--simulated-nodes", "3", "--devices-per-node", "4")
QUICK = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0.2")
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def plane(where: str) -> Iterator[Process]:
    with controlled(where, *SIMULATED_NODES, *QUICK) as up:
        yield up


@pytest.fixture
def cluster(plane: Process, any_kubectl: Path, home: Path) -> Iterator[Cluster]:
    """Have a namespace; leave no rule and no pod behind."""
    made = Cluster(any_kubectl, plane.kubeconfig, home, f"story-{next(_NUMBERS)}")
    made.create_namespace()
    made.listed(lambda slices: len(slices) == 3, "resourceslices")
    yield made
    # It waits until everything in it is gone, so devices are free for the next story.
    made.delete("devicetaintrules", f"namespace/{made.namespace}")


def start(cluster: Cluster, app: str, replicas: int = 1, *tolerations: Obj) -> list[str]:
    """Run an application on devices; return the names of its pods."""
    cluster.apply(template(app, devices(1, *tolerations)), deployment(app, replicas))
    cluster.rolled_out(app)
    names = cluster.names(app)
    assert len(names) == replicas
    return names


def lone(cluster: Cluster, name: str, *tolerations: Obj) -> str:
    """Run a pod that nobody replaces."""
    expected = pod(name, name, resourceClaimTemplateName=name)
    cluster.apply(template(name, devices(1, *tolerations)), expected)
    cluster.wait("Ready", f"pod/{name}")
    return name


def slice_of(cluster: Cluster, pool: str) -> Obj:
    items = cluster.get("resourceslices")["items"]
    (only,) = [item for item in items if item["spec"]["pool"]["name"] == pool]
    return only


def test_a_driver_degrades_a_device(cluster: Cluster) -> None:
    (before,) = start(cluster, "app")
    ((pool, device),) = cluster.devices(before)
    published = slice_of(cluster, pool)
    (sick,) = [name_ for name_ in published["spec"]["devices"] if name_["name"] == device]

    sick["taints"] = [{"key": "gpu.sully.dev/ecc-errors", "effect": "NoExecute"}]
    cluster.replace(published)

    cluster.gone(before)
    cluster.rolled_out("app")
    assert (pool, device) not in cluster.devices(*cluster.names("app"))
    published = slice_of(cluster, pool)
    for name_ in published["spec"]["devices"]:
        name_.pop("taints", None)
    cluster.replace(published)


def policy(*steps: Obj, **spec: object) -> Obj:
    return manifests.body(
        "DeviceTaintPolicy",
        "faults",
        {
            "mode": "Enforce",
            "selector": {"driver": DRIVER},
            "sources": [{"name": "ecc", "driverTaint": {"key": "gpu.sully.dev/ecc-errors"}}],
            "taint": {"key": "example.com/faulty"},
            "steps": list(steps),
            **spec,
        },
    )


def test_a_policy_evicts_from_a_faulty_device_and_gives_it_back(cluster: Cluster) -> None:
    (before,) = start(cluster, "app")
    ((pool, device),) = cluster.devices(before)
    cluster.apply(
        policy(
            {"effect": "NoSchedule"},
            {"after": "100ms", "effect": "NoExecute"},
            clearAfter="200ms",
        )
    )
    published = slice_of(cluster, pool)
    (sick,) = [name_ for name_ in published["spec"]["devices"] if name_["name"] == device]
    sick["taints"] = [{"key": "gpu.sully.dev/ecc-errors", "effect": "None"}]
    cluster.replace(published)

    cluster.gone(before)
    cluster.rolled_out("app")
    assert (pool, device) not in cluster.devices(*cluster.names("app"))
    (rule_,) = cluster.get("devicetaintrules")["items"]
    assert rule_["metadata"]["ownerReferences"][0]["name"] == "faults"
    published = slice_of(cluster, pool)
    for name_ in published["spec"]["devices"]:
        name_.pop("taints", None)
    cluster.replace(published)
    cluster.removed("devicetaintrule", rule_["metadata"]["name"])
    cluster.delete("devicetaintpolicies")


def publish_taints(cluster: Cluster, *taints: Obj) -> None:
    """Publish these taints of all devices, as a driver does that is wrong about them."""
    for published in cluster.get("resourceslices")["items"]:
        for device in published["spec"].get("devices", ()):
            device["taints"] = list(taints)
        cluster.replace(published)


def test_a_false_positive_of_a_driver(cluster: Cluster) -> None:
    """A policy suppresses it: pods are scheduled and stay, until the policy is deleted."""
    (before,) = start(cluster, "app")
    publish_taints(cluster, {"key": "gpu.sully.dev/false", "effect": "NoSchedule"})
    waiting = pod("late", "late", resourceClaimTemplateName="late")
    cluster.apply(template("late", devices(1)), waiting)
    cluster.wait("PodScheduled=false", "pod/late")
    false = {"key": "gpu.sully.dev/false", "until": "2031-01-01T00:00:00Z"}
    spec = {"mode": "Enforce", "selector": {"driver": DRIVER}, "suppress": [false]}
    cluster.apply({**policy(), "spec": spec})
    cluster.wait("Ready", "pod/late")

    publish_taints(cluster, {"key": "gpu.sully.dev/false", "effect": "NoExecute"})
    lone(cluster, "later")
    assert cluster.names("app") == [before]
    cluster.run("delete", "devicetaintpolicies", "--all")
    cluster.gone(before, "late", "later")
    publish_taints(cluster)
    cluster.rolled_out("app")


def proven_by(exit_: str) -> Obj:
    """Return a proof by a Job whose pods end as their annotation requests."""
    spec = {"containers": [{"name": "test", "image": "gpu-test"}]}
    template = manifests.pod_template({}, spec, annotations={"sully.dev/simulated-exit": exit_})
    return {
        "type": "Job",
        "job": {
            "namespace": "gpu-tests",
            "deviceClassName": DRIVER,
            "retryAfter": "3s",
            "attempts": 10,  # on a busy machine several fail before the story continues
            "template": {"spec": {"template": template}},
        },
    }


def test_a_job_proves_a_device_healthy_before_it_is_given_back(cluster: Cluster) -> None:
    (before,) = start(cluster, "app")
    ((pool, device),) = cluster.devices(before)
    cluster.create_namespace("gpu-tests", **{"resource.kubernetes.io/admin-access": "true"})
    cluster.apply(policy({"effect": "NoExecute"}, proof=proven_by("1@0s")))
    published = slice_of(cluster, pool)
    (sick,) = [name_ for name_ in published["spec"]["devices"] if name_["name"] == device]
    sick["taints"] = [{"key": "gpu.sully.dev/ecc-errors", "effect": "None"}]
    cluster.replace(published)
    cluster.gone(before)
    (rule_,) = cluster.get("devicetaintrules")["items"]
    published = slice_of(cluster, pool)
    for name_ in published["spec"]["devices"]:
        name_.pop("taints", None)
    cluster.replace(published)

    messages = ".status.conditions[?(@.type=='sully.dev/ProofFailed')].message"
    failed = "failed: exit code 1"
    cluster.becomes(lambda text: failed in text, messages, "devicetaintpolicy", "faults")
    assert cluster.get("devicetaintrules")["items"][0]["spec"] == rule_["spec"]
    cluster.apply(policy({"effect": "NoExecute"}, proof=proven_by("0@0s")))
    cluster.removed("devicetaintrule", rule_["metadata"]["name"])
    cluster.delete("devicetaintpolicies")
    cluster.delete("namespace/gpu-tests")


@contextmanager
def monitored(plane: Process, node: str, library: FakeNvml, *, hold: timedelta) -> Iterator[None]:
    """Run the agent of a node on a library of NVML, in a thread, as long as the block lasts."""
    started: Future[tuple[Agent, asyncio.AbstractEventLoop]] = Future()
    monitor = GpuMonitor(Settings(node=node, boot_id="b1", hold=hold))

    async def run() -> None:
        async with HttpTransport(find_access(str(plane.kubeconfig))) as admin:
            opens = partial(Nvml.open, library)
            agent = Agent(admin, monitor, opens, clock=SystemClock(), timing=FAST)
            started.set_result((agent, asyncio.get_running_loop()))
            await agent.run()

    with fresh_pynvml(), ThreadPoolExecutor(1) as threads:
        ended = threads.submit(asyncio.run, run())
        agent, loop = started.result()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(agent.stop)
            ended.result()


def _is_reported(cluster: Cluster, text: str) -> bool:
    events = cluster.get("events", namespace="*")["items"]
    return any(text in event["message"] for event in events)


def test_from_an_xid_to_a_proof(cluster: Cluster, plane: Process) -> None:
    """XID, DeviceHealth, policy, taint, eviction, and back after a Job: with an H200's answers."""
    (before,) = start(cluster, "app")
    ((pool, device),) = cluster.devices(before)
    published = slice_of(cluster, pool)["spec"]["devices"]
    (sick,) = [name_ for name_ in published if name_["name"] == device]
    library = recorded()
    library.answer("nvmlDeviceGetUUID", 0, sick["attributes"]["uuid"]["string"].encode() + b"\0")
    cluster.create_namespace("gpu-tests", **{"resource.kubernetes.io/admin-access": "true"})
    source: Obj = {"name": "xid", "deviceHealth": {"keys": ["xid"], "values": ["79"]}}
    steps = ({"effect": "NoSchedule"}, {"after": "100ms", "effect": "NoExecute"})
    proof = proven_by("0@0s")
    cluster.apply(policy(*steps, sources=[source], clearAfter="500ms", proof=proof))
    # As long as controllers may take to see it: what ends sooner they may never have seen.
    with monitored(plane, pool, library, hold=timedelta(hours=1)):
        cluster.created("devicehealth", pool)
        library.deliver(xid=79)
        cluster.gone(before)
        (tainting,) = cluster.get("devicetaintrules")["items"]
    with monitored(plane, pool, library, hold=timedelta()):
        cluster.rolled_out("app")
        cluster.removed("devicetaintrule", tainting["metadata"]["name"])
    for text in ("Set NoExecute: health is Unhealthy (xid 79)", "and Job gpu-tests/"):
        poll(partial(_is_reported, cluster, text))
    assert cluster.get("devicetaintrules")["items"] == []
    cluster.delete("devicetaintpolicies")
    cluster.delete(f"devicehealth/{pool}")
    cluster.delete("namespace/gpu-tests")


def test_a_health_monitor_marks_a_device_by_name(cluster: Cluster) -> None:
    names = start(cluster, "app", 3)
    held = {cluster.devices(name)[0]: name for name in names}
    (pool, device), victim = sorted(held.items())[0]
    others = {pod["metadata"]["uid"] for pod in cluster.pods("app")}
    others -= {item["metadata"]["uid"] for item in [cluster.get("pod", victim)]}

    # With `create`, as a program does that knows nothing but names.
    cluster.apply(rule("monitor", "NoExecute", driver=DRIVER, pool=pool, device=device))

    cluster.gone(victim)
    cluster.rolled_out("app")
    now = cluster.names("app")
    assert len(now) == 3
    assert (pool, device) not in cluster.devices(*now)
    # Nobody else was disturbed.
    assert others <= {pod["metadata"]["uid"] for pod in cluster.pods("app")}


def test_look_first_then_evict(cluster: Cluster) -> None:
    names = start(cluster, "app", 4)
    held = cluster.devices(*names)
    pool = held[0][0]
    there = [name for name in names if cluster.devices(name)[0][0] == pool]

    cluster.apply(rule("planned", "None", driver=DRIVER, pool=pool))
    cluster.wait("EvictionInProgress=false", "devicetaintrule/planned")
    status, reason, message = cluster.condition("planned")
    assert (status, reason) == ("False", "NoEffect")
    assert f"{len(there)} allocated device{'s' if len(there) > 1 else ''} selected" in message
    assert cluster.names("app") == names

    cluster.patch("devicetaintrule/planned", {"spec": {"taint": {"effect": "NoExecute"}}})

    cluster.gone(*there)
    cluster.wait("EvictionInProgress=false", "devicetaintrule/planned")
    cluster.rolled_out("app")
    assert pool not in {place for place, _ in cluster.devices(*cluster.names("app"))}
    assert cluster.condition("planned")[1] == "Completed"


def test_a_rule_that_is_there_before_the_device(cluster: Cluster) -> None:
    driver = "late.example.com"
    picks = {"cel": {"expression": f'device.driver == "{driver}"'}}
    class_ = {"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": "late"}}
    published = {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": "late"},
        "spec": {
            "driver": driver,
            "nodeName": "worker-0000",
            "pool": {"name": "late", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "dev-0"}],
        },
    }
    cluster.apply(rule("early", "NoSchedule", driver=driver, pool="late", device="dev-0"))
    cluster.apply(class_ | {"spec": {"selectors": [picks]}}, published)
    cluster.apply(claim("c", devices(1, class_="late")), pod("p", "p", resourceClaimName="c"))

    cluster.wait("PodScheduled=false", "pod/p")
    cluster.delete("devicetaintrule/early")

    cluster.wait("Ready", "pod/p")
    assert cluster.devices("p") == [("late", "dev-0")]
    cluster.delete("resourceslice/late", "deviceclass/late")


def test_pods_that_share_a_claim_are_evicted_together(cluster: Cluster) -> None:
    shared = [pod(name, "app", resourceClaimName="shared") for name in ("one", "two")]
    cluster.apply(claim("shared", devices(1)), *shared)
    cluster.wait("Ready", "pod/one", "pod/two")
    ((pool, device),) = cluster.devices("one")
    assert cluster.devices("two") == [(pool, device)]

    cluster.apply(rule("broken", "NoExecute", driver=DRIVER, pool=pool, device=device))

    cluster.gone("one", "two")
    cluster.wait("EvictionInProgress=false", "devicetaintrule/broken")
    assert cluster.condition("broken")[2].startswith("2 pods evicted since starting the controller")


def test_tolerations_buy_time(cluster: Cluster) -> None:
    forever = lone(cluster, "forever", tolerate())
    short = lone(cluster, "short", tolerate(seconds=2))
    none = lone(cluster, "none")
    cluster.apply(rule("all", "NoExecute", driver=DRIVER))
    added = cluster.get("devicetaintrule", "all")["spec"]["taint"]["timeAdded"]

    cluster.gone(none)
    cluster.gone(short)

    # It had its two seconds: the event about its eviction is from after them.
    events = cluster.get("events", fieldSelector=f"involvedObject.name={short}")["items"]
    first_timestamps = [
        event["firstTimestamp"] for event in events if "Marking" in event["message"]
    ]
    assert [
        (_time(message) - _time(added)).total_seconds() >= 2 for message in first_timestamps
    ] == [True]
    assert cluster.names(forever) == [forever]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_a_rule_is_withdrawn_in_the_middle(cluster: Cluster) -> None:
    patient = start(cluster, "patient", 2, tolerate(seconds=3600))
    hasty = start(cluster, "hasty", 2)
    cluster.apply(rule("mistake", "NoExecute", driver=DRIVER))
    cluster.gone(*hasty)
    cluster.wait("EvictionInProgress=true", "devicetaintrule/mistake")

    cluster.delete("devicetaintrule/mistake")

    cluster.event("Cancelling deletion")
    cluster.rolled_out("hasty")
    assert cluster.names("patient") == patient


def test_a_driver_that_restarts_disturbs_nobody(cluster: Cluster) -> None:
    before = start(cluster, "app", 6)
    uids = {pod["metadata"]["uid"] for pod in cluster.pods("app")}
    for number in range(3):
        published = slice_of(cluster, f"worker-000{number}")
        published["spec"]["pool"]["generation"] += 1
        cluster.replace(published)

    # The new generation is in use: more pods find devices there, and those before stay.
    cluster.scale("deployment/app", 12)
    cluster.rolled_out("app")

    assert set(before) < set(cluster.names("app"))
    assert uids < {pod["metadata"]["uid"] for pod in cluster.pods("app")}
    assert len(set(cluster.devices(*cluster.names("app")))) == 12


def test_a_kill_in_the_middle_of_an_eviction(
    where: str, any_kubectl: Path, home: Path, tmp_path: Path
) -> None:
    again = partial(
        controlled, where, *SIMULATED_NODES, *QUICK, data_dir=tmp_path / "data", crew=SHORT
    )
    with again() as up:
        cluster = Cluster(any_kubectl, up.kubeconfig, home)
        replaced = start(cluster, "replaced", 3)
        soon, tolerating = (
            lone(cluster, "soon", tolerate(seconds=1)),
            lone(cluster, "kept", tolerate()),
        )
        cluster.apply(rule("broken", "NoExecute", driver=DRIVER))
        up.stop(signal.SIGKILL)

    with again() as up:
        cluster = Cluster(any_kubectl, up.kubeconfig, home)
        cluster.gone(*replaced, soon)
        cluster.wait("EvictionInProgress=false", "devicetaintrule/broken")
        # Every device is marked, so those who came instead wait; then they need not any more.
        cluster.wait("PodScheduled=false", "pods", labelSelector="app=replaced")
        cluster.delete("devicetaintrule/broken")
        cluster.rolled_out("replaced")
        now = cluster.names("replaced")
        held = cluster.devices(tolerating, *now)

    assert len(now) == 3
    assert not set(now) & set(replaced)
    assert len(set(held)) == len(held) == 4
