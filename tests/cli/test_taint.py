"""`sully taint` and `sully untaint` against a running `sully up`: questions, progress, Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import manifests
from cli.terminals import environment, piped, terminal
from e2e.beside import plane as controlled
from manifests import claim_spec, pod_spec
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import find_access
from sully.client.options import WatchOptions
from sully.client.transport import Key, Kind
from sully.controllers.workloads.kinds import REPLICA_SETS
from sully.domain.simulated.fleet import DRIVER, name_of
from sully.views import fleet_kinds as fleetkinds
from sully.views import kinds
from sully.views.snapshot.kinds import TEMPLATES

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
Obj = dict[str, Any]
PODS: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
ACCOUNTS: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
SETS: Kind[Obj] = REPLICA_SETS.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
CLUSTERS: Kind[Obj] = fleetkinds.CLUSTERS.read_as(dict)
NODES = 4
KEY = "example.com/hot"
FIRST, LAST = f"{DRIVER}/{name_of(0)}", f"{DRIVER}/{name_of(NODES - 1)}"


@dataclass(frozen=True)
class Server:
    """A running control plane, and what a test wants to know of it."""

    kubeconfig: Path
    process: subprocess.Popen[str]

    @property
    def env(self) -> dict[str, str]:
        return environment(self.kubeconfig)

    def sully(self, *arguments: str, input_text: str | None = None) -> Any:
        return piped(*arguments, env=self.env, input_text=input_text)

    def ask(self, work: Callable[[HttpTransport], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with HttpTransport(find_access(str(self.kubeconfig), "")) as transport:
                return await work(transport)

        return asyncio.run(run())

    def rules(self) -> dict[str, Obj]:
        async def work(transport: HttpTransport) -> Any:
            return (await transport.list(RULES)).items

        return {item["metadata"]["name"]: item for item in self.ask(work)}

    def history(self, *arguments: str) -> list[Obj]:
        shown = self.sully("history", *arguments, "-o", "json").stdout
        entries: list[Obj] = json.loads(shown)["history"]
        return entries

    def device_of(self, app: str) -> tuple[str, str]:
        """Return pool and device that one of the pods of an application holds."""

        async def work(transport: HttpTransport) -> Any:
            return (await transport.list(CLAIMS, "a")).items

        held = (item for item in self.ask(work) if item["metadata"]["name"].startswith(f"{app}-"))
        (result,) = next(held)["status"]["allocation"]["devices"]["results"]
        return result["pool"], result["device"]


async def until(
    transport: HttpTransport, kind: Kind[Obj], done: Callable[[list[Obj]], bool]
) -> None:
    """Follow a collection until it is as wanted."""
    result: dict[str, Obj] = {}
    async for event in transport.watch(kind, "a" if kind.namespaced else "", WatchOptions()):
        if event.object is None:
            continue
        name = event.object["metadata"]["name"]
        result[name] = event.object
        if event.type == "DELETED":
            del result[name]
        if done(list(result.values())):
            return


def are_running(number: int) -> Callable[[list[Obj]], bool]:
    """Return whether there are so many pods, all of them run, and none of them is terminating."""

    def done(pods: list[Obj]) -> bool:
        terminating = any("deletionTimestamp" in x["metadata"] for x in pods)
        running = all(x["status"].get("phase") == "Running" for x in pods)
        return len(pods) == number and running and not terminating

    return done


async def written(transport: HttpTransport, kind: Kind[Obj], since: str) -> list[Obj]:
    """Return how objects were written after a version of their collection, up to now."""

    def version(obj: Obj) -> int:
        return int(obj["metadata"]["resourceVersion"])

    missing = {version(x) for x in (await transport.list(kind)).items if version(x) > int(since)}
    results: list[Obj] = []
    if missing:
        async for event in transport.watch(kind, "", WatchOptions(resource_version=since)):
            if event.object is None:
                continue
            results.append(event.object)
            missing.discard(version(event.object))
            if not missing:
                break
    return results


async def make(transport: HttpTransport, name: str, replicas: int, node: str, **more: Any) -> None:
    template = manifests.claim_template(name, claim_spec(DRIVER, **more), namespace="a")
    await transport.create(TEMPLATES.read_as(dict), template)
    selector = {"kubernetes.io/hostname": node} if node else {}
    pods = manifests.pod_template({"app": name}, pod_spec(template=name, nodeSelector=selector))
    body = manifests.workload("ReplicaSet", name, pods, replicas=replicas)
    body["metadata"]["namespace"] = "a"
    await transport.create(SETS, body)


async def fill(transport: HttpTransport) -> None:
    await until(transport, SLICES, lambda result: len(result) == NODES)
    await transport.create(NAMESPACES, {"metadata": {"name": "a"}})
    await until(transport, ACCOUNTS, bool)
    # The patient ones stay where they are for an hour, so that a test can look at them terminating.
    patient = {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    await make(transport, "patient", 1, name_of(NODES - 1), tolerations=[patient])
    # It is the first on its node: then it has the first device there, and keeps it.
    await until(transport, PODS, are_running(1))
    await make(transport, "web", 3, "")
    await until(transport, PODS, are_running(4))
    await transport.create(CLUSTERS, manifests.cluster("eu-1", accepted=True))


@pytest.fixture(scope="module")
def server(where: str) -> Iterator[Server]:
    flags = ("--store", "memory", "--simulated-nodes", str(NODES), "--devices-per-node", "8")
    with controlled(where, *flags) as up:
        result = Server(up.kubeconfig, up.child)
        result.ask(fill)
        yield result


@pytest.fixture(autouse=True)
def _no_rules_are_left(server: Server) -> Iterator[None]:
    yield

    async def clear(transport: HttpTransport) -> None:
        await transport.delete_collection(RULES)
        await until(transport, PODS, are_running(4))

    server.ask(clear)


def test_the_plan_a_question_and_progress(server: Server) -> None:
    # Where it is depends on who was evicted before.
    pool, device = server.device_of("web")
    arguments = ["taint", "device", f"{DRIVER}/{pool}/{device}", f"{KEY}=fan:NoExecute"]
    arguments += ["--name", "hot"]
    with terminal(*arguments, "--reason", "fan broken", "--for", "2h", env=server.env) as screen:
        screen.wait_for("1 of 32 devices affected")
        screen.wait_for("[y/N] ")
        screen.type("y\n")
        screen.wait_for("devicetaintrule.resource.k8s.io/hot created")
        screen.wait_for("\n1 pod evicted")
        assert screen.end() == 0

    rule = server.rules()["hot"]
    assert rule["spec"]["deviceSelector"] == {
        "driver": DRIVER,
        "pool": pool,
        "device": device,
    }
    taint = {name: rule["spec"]["taint"][name] for name in ("key", "value", "effect")}
    assert taint == {"key": KEY, "value": "fan", "effect": "NoExecute"}
    assert rule["spec"]["taint"]["description"] == "fan broken"
    assert rule["spec"]["taint"]["evictionsPerSecond"] == 10
    assert "sully.dev/expires-at" in rule["metadata"]["annotations"]


@pytest.mark.parametrize("answer", ["n", "", "yes please"])
def test_a_no_changes_nothing(server: Server, answer: str) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoExecute")
    with terminal(*arguments, env=server.env) as screen:
        # Who has not seen the plan yet cannot have agreed to it.
        screen.type("y\n")
        screen.wait_for("[y/N] ")
        screen.type(answer + "\n")
        screen.wait_for("Nothing changed.")
        assert screen.end() == 1

    assert not server.rules()


def test_much_has_to_be_typed(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/*", f"{KEY}:NoExecute", "--no-wait")
    with terminal(*arguments, f"{KEY}2:NoExecute", env=server.env) as screen:
        screen.wait_for("8 of 32 devices affected")
        # The plan is longer than the screen, so the question comes with what matters of it.
        screen.wait_for("8 of 32 devices affected")
        screen.wait_for("Type the number of ")
        screen.type("y\n")
        screen.wait_for("The answer was not ")
        screen.wait_for(": nothing changed.")
        assert screen.end() == 1
    assert not server.rules()

    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("Type the number of ")
        screen.wait_for("(")
        screen.wait_for(") to continue: ")
        number = screen.shown.rpartition("(")[2].partition(")")[0]
        screen.type(number + "\n")
        screen.wait_for("created")
        assert screen.end() == 0
    assert len(server.rules()) == 1


def test_ctrl_c_at_the_question_changes_nothing(server: Server) -> None:
    with terminal(
        "taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoExecute", env=server.env
    ) as screen:
        screen.wait_for("[y/N] ")
        screen.interrupt()
        assert screen.end() == 130

    assert not server.rules()


def test_ctrl_c_while_the_server_does_not_answer_shows_what_is_not_known(server: Server) -> None:
    # It evicts no pod, so that nothing is read after the answer.
    arguments = ("taint", "device", "*", f"{KEY}:NoSchedule", "--name", "late")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("Type the number of devices that change (32) to continue: ")
        server.process.send_signal(signal.SIGSTOP)
        # It may continue for a moment: long enough to answer.
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
        try:
            screen.type("32\n")
            screen.wait_for("Writing devicetaintrule late")
            screen.interrupt()
            screen.wait_for("devicetaintrule late may have been written")
            screen.wait_for("kubectl delete devicetaintrule late")
            assert screen.end() == 130
        finally:
            server.process.send_signal(signal.SIGCONT)


def test_ctrl_c_while_pods_are_read_again_changes_nothing(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoExecute", "--name", "late")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("[y/N] ")
        server.process.send_signal(signal.SIGSTOP)
        # It may continue for a moment: long enough to answer.
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
        try:
            screen.type("y\n")
            screen.wait_for("Reading pods and claims")
            screen.interrupt()
            screen.wait_for("Nothing changed.")
            assert screen.end() == 130
        finally:
            server.process.send_signal(signal.SIGCONT)

    assert not server.rules()


def test_who_was_not_the_first_is_shown_what_to_do(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-0", "--name", "mine")
    with terminal(*arguments, f"{KEY}:NoExecute", env=server.env) as screen:
        screen.wait_for("[y/N] ")
        assert server.sully(*arguments, f"{KEY}:NoSchedule").returncode == 0
        screen.type("y\n")
        screen.wait_for('devicetaintrule "mine" already exists')
        screen.wait_for("use --overwrite to change it, or --name to create another")
        assert screen.end() == 1


def test_who_gets_only_a_part_done_is_shown_how_to_undo_it(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-[67]", "--name", "mine")
    with terminal(*arguments, f"{KEY}:NoExecute", env=server.env) as screen:
        screen.wait_for("[y/N] ")
        assert server.sully(*arguments, f"{KEY}:NoSchedule").returncode == 0
        (first,) = (
            name
            for name, entry in server.rules().items()
            if entry["spec"]["deviceSelector"]["device"] == "gpu-6"
        )
        server.ask(lambda transport: transport.delete(RULES, Key("", first)))
        screen.type("y\n")
        screen.wait_for(f"devicetaintrule.resource.k8s.io/{first} created")
        screen.wait_for("1 of 2 rules were written")
        screen.wait_for("kubectl delete devicetaintrule -l sully.dev/taint=mine")
        screen.wait_for("already exists")
        assert screen.end() == 1


def test_what_another_admin_changed_meanwhile_is_not_overwritten(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-7", "--name", "mine", "--overwrite")
    server.sully(*arguments, f"{KEY}:NoSchedule")
    with terminal(*arguments, f"{KEY}:NoExecute", env=server.env) as screen:
        screen.wait_for("[y/N] ")
        assert server.sully(*arguments, f"{KEY}=theirs:NoSchedule").returncode == 0
        screen.type("y\n")
        screen.wait_for('devicetaintrule "mine" was changed or deleted after the plan was made')
        assert screen.end() == 1

    assert server.rules()["mine"]["spec"]["taint"]["value"] == "theirs"


def test_ctrl_c_leaves_the_rule_and_reports_how_to_stop_it(server: Server) -> None:
    # The patient pod is there, and stays for an hour.
    arguments = ("taint", "device", f"{LAST}/gpu-0", f"{KEY}:NoExecute", "--name", "slow", "--yes")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("devicetaintrule.resource.k8s.io/slow created")
        screen.wait_for("pods evicted")
        screen.interrupt()
        screen.wait_for("The rule slow remains")
        screen.wait_for("sully evictions pause slow")
        screen.wait_for("sully evictions resume slow")
        assert screen.end() == 130

    assert "slow" in server.rules()


def test_who_waits_is_shown_that_another_admin_deleted_it(server: Server) -> None:
    arguments = ("taint", "device", f"{LAST}/gpu-0", f"{KEY}:NoExecute", "--name", "slow", "--yes")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("0/1 pods evicted")
        assert server.sully("untaint", "device", f"{LAST}/gpu-0", KEY).returncode == 0
        screen.wait_for("The rule was deleted or has expired")
        screen.wait_for(", 1 pod not evicted.")
        assert screen.end() == 1


def test_nobody_waits_for_pods_that_tolerate_it_longer_than_it_stays(server: Server) -> None:
    arguments = ("taint", "device", f"{LAST}/gpu-0", f"{KEY}:NoExecute", "--for", "30m", "--yes")
    done = server.sully(*arguments)

    assert done.returncode == 0
    assert "No pods would be evicted." in done.stdout
    assert "\n0 pods evicted, 1 pod tolerating the taint until it expires.\n" in done.stdout


def test_who_tolerated_it_for_a_while_does_not_come_back(server: Server) -> None:
    # On all devices of its node: the patient one cannot go elsewhere, and then its time is over.
    done = server.sully("taint", "device", f"{LAST}/*", f"{KEY}:NoExecute", "--dry-run")

    assert done.returncode == 3
    assert f"tainted {KEY}:NoExecute by" in done.stdout
    assert "no longer tolerated" in done.stdout


def test_without_a_terminal_it_is_refused(server: Server) -> None:
    done = server.sully("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoExecute")

    assert done.returncode == 2
    assert "use --yes to skip the confirmation" in done.stderr
    assert not server.rules()


def test_a_dry_run_prints_the_rule_and_the_plan_beside_it(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/*", f"{KEY}:NoExecute", "--dry-run", "-o", "json")
    done = server.sully(*arguments)

    assert done.returncode == 0
    rule = json.loads(done.stdout)
    assert (rule["kind"], rule["spec"]["taint"]["key"]) == ("DeviceTaintRule", KEY)
    assert "8 of 32 devices affected" in done.stderr
    assert not server.rules()


def test_nobody_is_asked_about_what_evicts_nobody(server: Server) -> None:
    done = server.sully("taint", "device", f"{FIRST}/gpu-7", f"{KEY}:NoSchedule", "--name", "calm")

    assert (done.returncode, done.stdout) == (
        0,
        "1 of 32 devices affected.\ndevicetaintrule.resource.k8s.io/calm created\n"
        "  to undo:  kubectl delete devicetaintrule calm\n",
    )
    assert "evictionsPerSecond" not in server.rules()["calm"]["spec"]["taint"]


def test_everybody_is_asked_about_large_changes(server: Server) -> None:
    arguments = ("taint", "device", "*", f"{KEY}:NoSchedule", "--name", "all")
    refused = server.sully(*arguments)
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("Large change: 32 of 32 devices")
        screen.wait_for(f"Taint 32 devices with {KEY}:NoSchedule?\n")
        screen.wait_for("Type the number of devices that change (32) to continue: ")
        screen.type("3\n")
        screen.wait_for("The answer was not 32: nothing changed.")
        code = screen.end()

    assert (refused.returncode, code) == (2, 1)
    assert "this changes 32 of 32 devices, and there is no terminal to ask" in refused.stderr
    assert not server.rules()
    done = server.sully(*arguments, "--yes")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "32 of 32 devices affected.")


def test_a_second_time_needs_overwrite(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-7", f"{KEY}=a:NoSchedule")
    assert server.sully(*arguments).returncode == 0

    again = server.sully(*arguments)
    arguments = ("taint", "device", f"{FIRST}/gpu-7", f"{KEY}=b:NoSchedule")
    changed = server.sully(*arguments, "--overwrite")

    assert (again.returncode, changed.returncode) == (1, 0)
    assert "use --overwrite to change it" in again.stderr
    (rule,) = server.rules().values()
    assert rule["spec"]["taint"]["value"] == "b"


def test_a_glob_is_a_rule_for_each_device(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-[01]", f"{KEY}:NoSchedule", "--name", "rack")
    assert server.sully(*arguments).returncode == 0

    values = server.rules().values()
    assert sorted(x["spec"]["deviceSelector"]["device"] for x in values) == ["gpu-0", "gpu-1"]
    assert {x["metadata"]["labels"]["sully.dev/taint"] for x in values} == {"rack"}

    done = server.sully("untaint", "device", f"{FIRST}/*", KEY)
    assert (done.returncode, done.stdout.count("deleted")) == (0, 2)
    assert not server.rules()


def test_a_glob_of_pools_is_a_rule_for_each_pool(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}*/*", f"{KEY}:NoSchedule", "--name", "rack")
    assert server.sully(*arguments, "--yes").returncode == 0

    driver, _, pool = FIRST.partition("/")
    (rule,) = server.rules().values()
    assert rule["spec"]["deviceSelector"] == {"driver": driver, "pool": pool}


def test_no_pod_is_evicted_before_all_rules_prevent_scheduling(server: Server) -> None:
    pattern = f"{DRIVER}/{name_of(0)[:-1]}[0-2]/*"

    async def there_when_the_first_evicts(transport: HttpTransport) -> set[str]:
        since = (await transport.list(RULES)).resource_version
        arguments = ("taint", "device", pattern, f"{KEY}:NoExecute", "--name", "wide", "--yes")
        done = await asyncio.to_thread(server.sully, *arguments, "--no-wait")
        assert done.returncode == 0, done.stderr
        specs = [rule["spec"] for rule in await written(transport, RULES, since)]
        before = takewhile(lambda spec: spec["taint"]["effect"] == "NoSchedule", specs)
        return {spec["deviceSelector"]["pool"] for spec in before}

    assert server.ask(there_when_the_first_evicts) == {name_of(n) for n in range(3)}
    assert {rule["spec"]["taint"]["effect"] for rule in server.rules().values()} == {"NoExecute"}


def test_one_device_leaves_a_wider_rule(server: Server) -> None:
    server.sully("taint", "device", f"{FIRST}/*", f"{KEY}:NoSchedule", "--name", "wide", "-y")
    added = server.rules()["wide"]["spec"]["taint"]["timeAdded"]

    refused = server.sully("taint", "device", f"{FIRST}/gpu-0", f"{KEY}-")
    unasked = server.sully("untaint", "device", f"{FIRST}/gpu-0", KEY)
    before = server.rules()
    done = server.sully("untaint", "device", f"{FIRST}/gpu-0", KEY, "--yes")
    rules = server.rules()
    named = server.sully("untaint", "rule", "wide")

    assert refused.returncode == 1
    assert "DeviceTaintRule wide, which also selects other devices" in refused.stderr
    assert unasked.returncode == 2
    assert "this replaces rules, and there is no terminal" in unasked.stderr
    assert list(before) == ["wide"]
    assert done.returncode == 0, done.stderr
    assert "it is replaced by" in done.stdout
    assert rules
    devices = {rule["spec"]["deviceSelector"]["device"] for rule in rules.values()}
    assert devices
    assert "gpu-0" not in devices
    assert {rule["spec"]["taint"]["timeAdded"] for rule in rules.values()} == {added}
    assert (named.returncode, named.stdout.count("deleted")) == (0, len(rules))
    assert not server.rules()


def test_a_rule_that_does_not_exist(server: Server) -> None:
    server.sully("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoSchedule", "--name", "wide", "-y")

    done = server.sully("untaint", "rule", "wid")

    assert done.returncode == 1
    assert 'devicetaintrule "wid" not found (did you mean "wide"?)' in done.stderr


def test_class_and_expression_are_criteria(server: Server) -> None:
    expression = f'"{DRIVER}" == device.driver'
    arguments = ("taint", "device", "--class", DRIVER, "--cel", expression, f"{KEY}:NoSchedule")
    assert server.sully(*arguments, "--yes").returncode == 0

    (rule,) = server.rules().values()
    assert rule["spec"]["deviceSelector"] == {
        "deviceClassName": DRIVER,
        "selectors": [{"cel": {"expression": expression}}],
    }


def test_no_placement_moves_to_a_cluster_that_is_tainted_next(server: Server) -> None:
    names = ("us-1", "us-2", "us-3")

    async def there_when_the_first_is_drained(transport: HttpTransport) -> set[str]:
        for name in names:
            await transport.create(CLUSTERS, manifests.cluster(name, accepted=True))
        await until_accepted(transport, names)
        since = (await transport.list(CLUSTERS)).resource_version
        arguments = ("taint", "cluster", "us-*", "maintenance:NoSelect", "--yes")
        done = await asyncio.to_thread(server.sully, *arguments)
        assert done.returncode == 0, done.stderr
        seen = await written(transport, CLUSTERS, since)
        for name in names:
            await transport.delete(CLUSTERS, Key("", name))
        marked = [(item["metadata"]["name"], _maintenance(item)) for item in seen]
        marked = [item for item in marked if item[1]]
        assert {name for name, effect in marked if effect == "NoSelect"} == {*names}
        return {name for name, _ in takewhile(lambda item: item[1] == "NoSelectIfNew", marked)}

    assert server.ask(there_when_the_first_is_drained) == {*names}


async def until_accepted(transport: HttpTransport, names: Iterable[str]) -> None:
    """Wait until the controllers have written to new clusters what they write only once."""
    missing = set(names)
    async for event in transport.watch(CLUSTERS, "", WatchOptions()):
        cluster = event.object or {"metadata": {}, "spec": {}}
        conditions = cluster.get("status", {}).get("conditions")
        if cluster["metadata"].get("finalizers") and cluster["spec"].get("taints") and conditions:
            missing.discard(cluster["metadata"]["name"])
        if not missing:
            return


def _maintenance(cluster: Obj) -> str:
    """Return the effect of a cluster's taint, if it has that."""
    taints = cluster["spec"].get("taints", ())
    return next((taint["effect"] for taint in taints if taint["key"] == "maintenance"), "")


def test_a_cluster_is_tainted_and_untainted(server: Server) -> None:
    def taints() -> list[str]:
        cluster = server.ask(lambda transport: transport.get(CLUSTERS, Key("", "eu-1")))
        result = cluster["spec"].get("taints", ())
        return [item["key"] for item in result if item["key"] == "maintenance"]

    refused = server.sully("taint", "cluster", "eu-1", "maintenance:NoSelect")
    assert (refused.returncode, taints()) == (2, [])
    assert (
        "this may change placements, and there is no terminal to ask for confirmation"
        in refused.stderr
    )

    arguments = ("taint", "cluster", "eu-1", "maintenance:NoSelect", "--yes")
    done = server.sully(*arguments, "--for", "2h", "--reason", "new switch")
    assert (done.returncode, done.stderr, taints()) == (0, "", ["maintenance"])
    done = server.sully(*arguments, "--overwrite", "--reason", "newer switch")
    assert done.returncode == 0, done.stderr
    first, second = server.history("cluster", "eu-1")
    assert (first["by"], first["reason"]) == (second["by"], "new switch")
    assert (first["endTime"], second["reason"]) == (second["endTime"], "newer switch")
    # Others may be recorded in the same second.
    assert "cluster/eu-1" in server.sully("history", "--no-headers").stdout

    done = server.sully("untaint", "cluster", "eu-1", "maintenance", "--yes")
    assert server.history("cluster/eu-1")[-1]["event"] == "untainted"
    assert (done.returncode, done.stdout, taints()) == (
        0,
        "managedcluster.cluster.open-cluster-management.io/eu-1 untainted\n",
        [],
    )
