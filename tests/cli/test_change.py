"""`taint`, `untaint`, `plan` and `evictions` as one types them: screens, pipes, and few rights.

Against a running control plane with simulated nodes; whole screens are compared, with names and
spans of time cut. Questions and progress of one taint are in test_taint.py.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manifests
from cli.terminals import environment, piped, terminal
from cli.test_taint import CLUSTERS, DRIVER, FIRST, KEY, LAST, RULES, Server, fill, name_of
from e2e.beside import plane as controlled
from sully.client.http.transport import HttpTransport
from sully.testing.cluster import Process

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
_RULE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: from-a-file}
spec: {deviceSelector: {pool: %s}, taint: {key: example.com/hot, effect: NoExecute}}
"""
_RIGHTS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: hardware}
rules:
- {apiGroups: [resource.k8s.io], resources: [resourceslices, devicetaintrules, deviceclasses],
   verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hardware}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hardware}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: guest}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: guest, namespace: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: guest}]
"""


@pytest.fixture(scope="module")
def up(where: str) -> Iterator[Process]:
    flags = ("--store", "memory", "--simulated-nodes", "4", "--devices-per-node", "8")
    with controlled(where, *flags) as plane:
        Server(plane.kubeconfig, plane.child).ask(fill)
        yield plane


@pytest.fixture
def server(up: Process) -> Iterator[Server]:
    result = Server(up.kubeconfig, up.child)
    yield result

    async def clear(transport: HttpTransport) -> None:
        await transport.delete_collection(RULES)

    result.ask(clear)


def cut(text: str) -> str:
    """Replace what differs from run to run: made-up names, spans of time, and gaps."""
    text = re.sub(r"\b(web|patient)-\w{5}(-gpu-\w{5})?\b", r"\1-X", text)
    text = re.sub(r"\b\d+m(\d+s)?\b", "T", text)
    return re.sub(r" {2,}", "  ", text)


def test_the_whole_screen_of_a_taint(server: Server) -> None:
    arguments = ("taint", "device", f"{LAST}/gpu-0", f"{KEY}=fan:NoExecute", "--name", "slow")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("[y/N] ")
        screen.type("y\n")
        screen.wait_for(" left")
        screen.interrupt()
        code = screen.end()

    lines = cut(screen.shown.replace("\r", "\n")).splitlines()
    assert code == 130
    assert max(len(line) for line in screen.shown.replace("\r", "\n").splitlines()) <= 80
    assert lines[:4] == [
        "DeviceTaintRule/slow would be created",
        "",
        "1 of 32 devices affected, used by 1 claim. 1 pod would be evicted (after T).",
        "It would be rescheduled.",
    ]
    # The patient pod tolerates the taint for an hour, which the bar knows from the plan.
    assert [line.strip() for line in lines[-9:]] == [
        f"Taint device {LAST}/gpu-0 with",
        f"{KEY}=fan:NoExecute and evict 1 pod? [y/N] y",
        "devicetaintrule.resource.k8s.io/slow created",
        "0/1 pods evicted, 10/s, about T left",
        "The rule slow remains, and evictions continue.",
        "to watch:  sully evictions --watch",
        "to pause:  sully evictions pause slow",
        "to resume:  sully evictions resume slow",
        "to undo:  kubectl delete devicetaintrule slow",
    ]


def test_ctrl_c_at_the_question_reports_that_nothing_happened(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoExecute")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("[y/N] ")
        screen.type("\x03")
        # A terminal throws away what is on its way when it hears Ctrl-C, and shows ^C then.
        screen.wait_for("^C")
        screen.interrupt()
        code = screen.end()

    assert code == 130
    assert screen.shown.endswith("\nNothing changed.\n")
    assert not server.rules()


def test_the_question_is_seen_by_whoever_types(server: Server, tmp_path: Path) -> None:
    log = tmp_path / "log"
    arguments = ("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoExecute")
    with terminal(*arguments, env=server.env, into=log) as screen:
        screen.wait_for("1 of 32 devices affected")
        screen.wait_for("[y/N] ")
        screen.type("n\n")
        assert screen.end() == 1

    assert log.read_text().endswith("\nNothing changed.\n")
    assert "\nDEVICE " in log.read_text()
    assert not server.rules()


def test_programs_get_the_objects(server: Server) -> None:
    arguments = ("device", f"{FIRST}/gpu-[67]")
    marked = server.sully("taint", *arguments, f"{KEY}:NoSchedule", "--name", "x", "-o", "json")
    there = server.rules()
    freed = server.sully("untaint", *arguments, KEY, "-o", "json")

    shown = [json.loads(item.stdout) for item in (marked, freed)]
    assert {(item["kind"], item["apiVersion"]) for item in shown} == {("List", "v1")}
    uids = {item["metadata"]["uid"] for item in there.values()}
    assert [{x["metadata"]["uid"] for x in item["items"]} for item in shown] == [uids, uids]
    results = [
        line.removeprefix("devicetaintrule.resource.k8s.io/x-worker-0000-")
        for line in (*marked.stderr.splitlines(), *freed.stderr.splitlines())
    ]
    undo = next(line for line in results if line.startswith("  to undo:  "))
    assert undo.startswith("  to undo:  kubectl delete devicetaintrule -l sully.dev/taint=")
    assert results == [
        "note: devices that appear later are not covered by these rules",
        "2 of 32 devices affected.",
        "gpu-6 created",
        "gpu-7 created",
        undo,
        "gpu-6 deleted",
        "gpu-7 deleted",
    ]


@pytest.mark.parametrize("checked", ["client", "server"])
def test_a_dry_run_is_a_manifest_for_kubectl(
    checked: str, server: Server, any_kubectl: Path
) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-7", "--name", "piped")
    mine = (*arguments, f"{KEY}=a:NoExecute", "--reason", "why", "--for", "1h", "-o", "yaml")
    made = server.sully(*mine, f"--dry-run={checked}")
    kubectl(any_kubectl, server, "apply", stdin=made.stdout)
    there = server.rules()["piped"]
    other = server.sully(
        *arguments, f"{KEY}:NoSchedule", "--overwrite", f"--dry-run={checked}", "-o", "json"
    )
    kubectl(any_kubectl, server, "apply", stdin=other.stdout)
    weaker = server.rules()["piped"]
    gone = server.sully("untaint", "device", f"{FIRST}/gpu-7", KEY, "--dry-run", "-o", "json")
    kubectl(any_kubectl, server, "delete", stdin=gone.stdout)

    assert there["spec"]["deviceSelector"]["device"] == "gpu-7"
    assert there["spec"]["taint"]["description"] == "why"
    assert "sully.dev/expires-at" in there["metadata"]["annotations"]
    assert weaker["spec"]["taint"]["effect"] == "NoSchedule"
    assert "value" not in weaker["spec"]["taint"]
    # What was not given again is kept.
    assert weaker["spec"]["taint"]["description"] == "why"
    assert not server.rules()


def kubectl(program: Path, server: Server, verb: str, *, stdin: str) -> None:
    arguments = [str(program), verb, "-f", "-"]
    subprocess.run(
        arguments, input=stdin, text=True, env=server.env, check=True, capture_output=True
    )


def test_a_dry_run_for_a_cluster_is_checked_and_printed(server: Server) -> None:
    arguments = ("taint", "cluster", "eu-1", "--dry-run")
    seen = [
        json.loads(server.sully(*arguments[:-1], "m=1:NoSelect", flag, "-o", "json").stdout)
        for flag in DRY
    ]
    wrong = server.sully(*arguments, "a key:NoSelect")
    named = server.sully(*arguments, "m:NoSelect", "-o", "name")

    for item in seen:
        assert (item["kind"], item["metadata"]["name"]) == ("ManagedCluster", "eu-1")
        (marked,) = (taint for taint in item["spec"]["taints"] if taint["key"] == "m")
        assert marked["value"] == "1"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", marked["timeAdded"])
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "spec.taints" in wrong.stderr
    assert named.stdout == "managedcluster.cluster.open-cluster-management.io/eu-1\n"


def test_several_taints_together(server: Server) -> None:
    where = f"{FIRST}/gpu-7"
    both = server.sully("taint", "device", where, "a.b/c:NoSchedule", "a.b/d:None", "--name", "x")
    mixed = server.sully("taint", "device", where, "a.b/e:NoSchedule", "a.b/d-", "--name", "y")

    assert (both.returncode, mixed.returncode) == (0, 0)
    assert sorted(server.rules()) == ["x-c-noschedule", "y"]
    assert mixed.stdout == (
        "1 of 32 devices affected.\n"
        "devicetaintrule.resource.k8s.io/x-d-none deleted\n"
        "devicetaintrule.resource.k8s.io/y created\n"
        "  to undo:  kubectl delete devicetaintrule y\n"
    )


def test_an_overwritten_rule_keeps_what_is_not_given(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-7", "--name", "x")
    server.sully(*arguments, "a.b/c=1:NoSchedule", "--reason", "why", "--for", "1h")
    before = server.rules()["x"]

    done = server.sully(*arguments, "a.b/c:NoSchedule", "--overwrite")

    after = server.rules()["x"]
    assert "devicetaintrule.resource.k8s.io/x configured\n  to undo:  kubectl patch" in done.stdout
    assert before["spec"]["taint"]["value"] == "1"
    assert set(after["spec"]["taint"]) == {"key", "effect", "timeAdded", "description"}
    annotations = after["metadata"]["annotations"]
    assert set(annotations) == {"sully.dev/created-by", "sully.dev/expires-at"}


DRY = ("--dry-run", "--dry-run=server", "--dry-run=client")


@pytest.mark.parametrize("flag", DRY)
def test_a_dry_run_changes_nothing(flag: str, server: Server) -> None:
    done = server.sully("taint", flag, "device", f"{FIRST}/gpu-7", f"{KEY}:NoSchedule")

    assert done.returncode == 0
    assert "1 of 32 devices affected" in done.stdout
    assert not server.rules()


def test_a_class_is_freed_by_its_class(server: Server) -> None:
    server.sully("taint", "device", "--class", DRIVER, f"{KEY}:NoSchedule", "--yes")
    server.sully("taint", "device", f"{FIRST}/gpu-7", f"{KEY}:NoSchedule", "--name", "other")

    done = server.sully("untaint", "device", "--class", DRIVER, KEY)

    assert (done.returncode, list(server.rules())) == (0, ["other"])


def test_clusters_by_label(server: Server) -> None:
    async def label(transport: HttpTransport) -> Any:
        from sully.client.transport import Key

        patch = {"metadata": {"labels": {"region": "eu"}}}
        await transport.patch(CLUSTERS, Key("", "eu-1"), patch)

    server.ask(label)
    arguments = ("cluster", "-l", "region=eu")

    # Placements that have the cluster may lose it, so this asks.
    refused = server.sully("taint", *arguments, "m:PreferNoSelect")
    marked = server.sully("taint", *arguments, "m:NoSelectIfNew")
    again = server.sully("taint", "cluster", "eu-*", "m:NoSelectIfNew")
    freed = server.sully("untaint", *arguments, "m")

    assert refused.returncode == 2
    assert "this may change placements" in refused.stderr
    assert marked.stdout == "managedcluster.cluster.open-cluster-management.io/eu-1 tainted\n"
    assert "already has a taint m:NoSelectIfNew" in again.stderr
    assert freed.stdout == "managedcluster.cluster.open-cluster-management.io/eu-1 untainted\n"


def test_a_taint_is_removed_from_the_clusters_that_have_it(server: Server) -> None:
    async def register(transport: HttpTransport) -> Any:
        await transport.create(CLUSTERS, manifests.cluster("eu-2", accepted=True))

    server.ask(register)
    server.sully("taint", "cluster", "eu-1", "m:NoSelectIfNew")

    freed = server.sully("untaint", "cluster", "eu-*", "m")
    again = server.sully("untaint", "cluster", "eu-*", "m")

    assert freed.stdout == "managedcluster.cluster.open-cluster-management.io/eu-1 untainted\n"
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "error: none of the 2 clusters has taint m\n"


def test_a_health_taint_that_the_server_keeps_is_reported(server: Server) -> None:
    key = "cluster.open-cluster-management.io/unreachable"

    done = server.sully("untaint", "cluster", "eu-1", key)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: the server keeps taints that the hub or a clustertaintpolicy manages\n"
        f"  eu-1: {key}:NoSelect\n"
        "  to see why:  sully explain cluster eu-1\n"
    )


def test_rules_are_paused_together(server: Server) -> None:
    server.sully("taint", "device", f"{FIRST}/gpu-[67]", f"{KEY}:NoSchedule", "--name", "rack")

    shown = server.sully("evictions", "-l", "sully.dev/taint=rack", "-o", "name")
    nobody = server.sully("evictions", "pause", "-l", "sully.dev/taint=rakc")
    # They evict no pod yet.
    paused = server.sully("evictions", "pause", "-l", "sully.dev/taint=rack", "--force")
    wrong = server.sully("evictions", "pause", "rack-*", "rakc-1")
    resumed = server.sully("evictions", "resume", *server.rules())

    assert shown.stdout == ""
    assert "no devicetaintrule matches -l sully.dev/taint=rakc" in nobody.stderr
    assert paused.stdout.count(" paused\n") == 2
    assert resumed.stdout.count(" resumed\n") == 2
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert 'devicetaintrule "rakc-1" not found' in wrong.stderr


def test_a_plan_from_a_snapshot_is_the_plan_of_the_server(server: Server, tmp_path: Path) -> None:
    rule, saved = tmp_path / "rule.yaml", tmp_path / "saved.yaml"
    rule.write_text(_RULE % name_of(0))
    offline = environment(tmp_path / "absent")
    arguments = ("plan", "-f", str(rule), "-o", "json")

    assert server.sully("snapshot", str(saved)).returncode == 0
    there = server.sully(*arguments)
    here = piped(*arguments, "--snapshot", str(saved), env=offline)

    assert (here.returncode, here.stderr) == (there.returncode, there.stderr)
    assert timeless(json.loads(here.stdout)) == timeless(json.loads(there.stdout))


def timeless(value: Any) -> Any:
    """Return a plan without its times: the two were not made at the same moment."""
    if isinstance(value, dict):
        return {
            name: timeless(entry)
            for name, entry in value.items()
            if not name.endswith(("Time", "Seconds"))
        }
    return [timeless(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("flags", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_a_plan_shows_what_kubectl_apply_does(
    flags: tuple[str, ...], server: Server, any_kubectl: Path, tmp_path: Path
) -> None:
    """A manifest that names a pool no more is for all of them."""
    import subprocess

    rule = tmp_path / "rule.yaml"
    text = _RULE.replace("{pool: %s}", f"{{driver: {DRIVER}%s}}").replace("NoExecute", "NoSchedule")

    def apply(pool: str) -> None:
        rule.write_text(text % pool)
        arguments = [str(any_kubectl), "apply", *flags, "-f", str(rule)]
        subprocess.run(arguments, env=server.env, check=True, capture_output=True)

    async def selectors(transport: HttpTransport) -> list[Any]:
        return [rule["spec"]["deviceSelector"] for rule in (await transport.list(RULES)).items]

    apply(f", pool: {name_of(0)}")
    rule.write_text(text % "")
    plan = json.loads(server.sully("plan", "-f", str(rule), "-o", "json").stdout)
    apply("")

    assert len(plan["devices"]) == 24
    assert server.ask(selectors) == [{"driver": DRIVER}]


@pytest.fixture
def guest(up: Process, server: Server, any_kubectl: Path, tmp_path: Path) -> dict[str, str]:
    """Return what a user runs in who may see devices and rules, and one namespace."""
    config = tmp_path / "guest"
    flags = ("--data-dir", str(up.data_dir), "--user", "guest", "-o", str(config))
    assert piped("kubeconfig", *flags, env=server.env).returncode == 0
    kubectl(any_kubectl, server, "apply", stdin=_RIGHTS)
    return environment(config)


def test_who_may_see_one_namespace(guest: dict[str, str], tmp_path: Path) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(_RULE % name_of(3))

    everywhere = piped("devices", env=guest)
    here = piped("devices", "-n", "a", env=guest)
    plan = piped("plan", "-f", str(rule), "-n", "a", env=guest)
    marked = piped("taint", "device", f"{FIRST}/gpu-0", f"{KEY}:NoSchedule", env=guest)
    reported = piped("history", env=guest)

    assert everywhere.returncode == 0
    assert (
        "not allowed to list pods, resourceclaims, resourceslicepatches; the" in everywhere.stderr
    )
    assert "use -n NAMESPACE if you may list them in one namespace" in everywhere.stderr
    assert here.stdout.count(" a/") == 4
    assert (plan.returncode, "a/patient-" in plan.stdout) == (1, True)
    assert "note: the plan only considers pods in namespace a" in plan.stdout
    assert "which pods would be evicted is not known" in plan.stderr
    assert marked.returncode == 1
    assert 'cannot create resource "devicetaintrules"' in marked.stderr
    assert reported.returncode == 1
    assert "or use -n NAMESPACE" in reported.stderr


def test_a_watch_of_one_namespace(guest: dict[str, str]) -> None:
    with terminal("devices", "--watch", "-n", "a", env=guest, columns=200) as screen:
        screen.wait_for(f"{LAST}/gpu-0")
        screen.interrupt()
        assert screen.end() == 130

    assert screen.shown.count(" a/") == 4


def test_a_certificate_that_has_ended(up: Process, server: Server, tmp_path: Path) -> None:
    config = tmp_path / "late"
    flags = ("--data-dir", str(up.data_dir), "--user", "late", "--expires", "1s", "-o", str(config))
    assert piped("kubeconfig", *flags, env=server.env).returncode == 0
    tries = (piped("devices", env=environment(config)) for _ in range(30))

    done = next(try_ for try_ in tries if "expired at" in try_.stderr)

    assert done.returncode == 1
    assert done.stderr.endswith("; renew it\n")


def test_a_rule_of_other_devices_is_overwritten_only_after_a_question(server: Server) -> None:
    node = ("taint", "device", f"{FIRST}/*", f"{KEY}=old:NoSchedule", "--name", "mine")
    assert server.sully(*node, "--reason", "firmware", "--yes").returncode == 0
    before = server.rules()["mine"]
    arguments = ("taint", "device", f"{LAST}/gpu-7", "a.b/c:None", "--name", "mine", "--overwrite")
    lost = (
        f"8 devices of node {name_of(0)} would lose {KEY}:NoSchedule of rule mine, created by"
        " kubernetes-admin"
    )

    refused = server.sully(*arguments)
    with terminal(*arguments, env=server.env, columns=200) as screen:
        screen.wait_for("9 of 32 devices affected")
        screen.wait_for(lost)
        screen.wait_for("to continue: ")
        screen.type("n\n")
        assert screen.end() == 1
    assert server.rules()["mine"]["spec"] == before["spec"]
    assert refused.returncode == 2
    assert f"error: {lost}, and there is no terminal to ask" in refused.stderr

    done = server.sully(*arguments, "--yes")

    assert done.returncode == 0
    assert "9 of 32 devices affected" in done.stdout
    assert lost in done.stderr
    undo = done.stdout.rpartition("to undo:  ")[2]
    assert undo.startswith("kubectl patch devicetaintrule mine --type merge -p '{")
    subprocess.run(["bash", "-c", undo], env=server.env, check=True)
    after = server.rules()["mine"]
    for rule in (before, after):
        del rule["spec"]["taint"]["timeAdded"]
    assert after["spec"] == before["spec"]


def test_an_overwritten_rule_of_the_same_devices_needs_no_question(server: Server) -> None:
    arguments = ("taint", "device", f"{FIRST}/gpu-7", "--name", "x")
    server.sully(*arguments, "a.b/c=1:NoSchedule")

    done = server.sully(*arguments, "a.b/c:None", "--overwrite")

    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 of 32 devices affected.")
