"""`sully devices`, `evictions`, `history` and `snapshot` against a running control plane.

In a terminal and in pipes, with simulated nodes; whole screens are compared without spans of time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminals import environment, piped, terminal
from e2e.beside import plane as controlled
from e2e.cluster import DRIVER, Cluster, claim, devices, pod, rule
from sully.testing.cluster import Process

pytestmark = pytest.mark.e2e
_SPAN = re.compile(r"\b\d+(s|m|m\d+s)\b")


@pytest.fixture(scope="module")
def up(where: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    flags = ("--simulated-nodes", "2", "--devices-per-node", "2", "--simulated-start-seconds", "0")
    folder = tmp_path_factory.mktemp("seeing")
    more = ("--store", "memory", "--simulated-stop-seconds", "0")
    with controlled(where, *flags, *more, data_dir=folder) as plane:
        yield plane


@pytest.fixture(scope="module")
def cluster(up: Process, any_kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Return a cluster in which one pod uses one device of each node."""
    result = Cluster(any_kubectl, up.kubeconfig, tmp_path_factory.mktemp("home"))
    # Else both pods may be scheduled to the node whose devices are published first.
    result.listed(lambda slices: len(slices) == 2, "resourceslices")
    for name in ("p-0", "p-1"):
        result.apply(claim(name, devices()), pod(name, "p", resourceClaimName=name))
        result.wait("Ready", f"pod/{name}")
    return result


@pytest.fixture
def env(up: Process, cluster: Cluster) -> dict[str, str]:
    return environment(up.kubeconfig)


def cut(text: str) -> str:
    """Replace spans of time, which differ from run to run, and the spaces that line them up."""
    return re.sub(r" {2,}", "  ", _SPAN.sub("T", text))


DEVICES = f"""\
DEVICE                           NODE         TAINTS  USED BY
{DRIVER}/worker-0000/gpu-0  worker-0000  -       default/p-0
{DRIVER}/worker-0000/gpu-1  worker-0000  -       -
{DRIVER}/worker-0001/gpu-0  worker-0001  -       default/p-1
{DRIVER}/worker-0001/gpu-1  worker-0001  -       -
"""


def test_devices_in_a_pipe(env: dict[str, str]) -> None:
    done = piped("devices", env=env)

    assert (done.stdout, done.stderr, done.returncode) == (DEVICES, "", 0)


def test_devices_in_a_terminal(env: dict[str, str]) -> None:
    with terminal("devices", "--free", env=env) as screen:
        code = screen.end()

    free = [line for line in DEVICES.splitlines(keepends=True) if "default" not in line]
    assert (screen.shown, code) == ("".join(free), 0)


def test_devices_as_a_plugin_of_kubectl(env: dict[str, str], any_kubectl: Path) -> None:
    path = f"{Path(sys.executable).parent}:{env['PATH']}"

    done = subprocess.run(
        [any_kubectl, "sully", "devices"],
        env=env | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == DEVICES


def test_whoever_reads_may_stop_early(env: dict[str, str]) -> None:
    arguments = f"'{sys.executable}' -m sully.cli.main devices | head -1; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(
        ["bash", "-c", arguments], env=env, capture_output=True, text=True, check=True
    )

    # The few lines of a small cluster may all have fitted into the pipe.
    assert done.stdout in (f"{DEVICES.splitlines()[0]}\n{code}\n" for code in (0, 141))
    assert done.stderr == ""


def test_watching_devices(env: dict[str, str], cluster: Cluster) -> None:
    pattern = f"{DRIVER}/worker-0000/gpu-1"
    with terminal("devices", pattern, "--watch", env=env, columns=160) as screen:
        screen.wait_for(pattern)
        cluster.apply(rule("seen", "NoSchedule", pool="worker-0000"))
        screen.wait_for("(rule/seen, ")
        cluster.delete("devicetaintrule/seen")
        screen.wait_for(f"{pattern}  worker-0000  -")
        screen.interrupt()
        code = screen.end()

    assert code == 130
    assert cut(screen.shown) == cut(
        f"""\
DEVICE                           NODE         TAINTS  USED BY
{pattern}  worker-0000  -       -
{pattern}  worker-0000  example.com/sick:NoSchedule (rule/seen, 0s)  -
{pattern}  worker-0000  -       -
"""
    )


def test_watching_the_status(env: dict[str, str], cluster: Cluster) -> None:
    with (
        terminal("status", "--watch", env=env, columns=160) as screen,
        terminal("history", "node", "worker-0000", "--watch", env=env, columns=160) as records,
    ):
        screen.wait_for("Taint sources  none")
        records.wait_for("TIME")
        cluster.apply(rule("counted", "NoSchedule", pool="worker-0000"))
        screen.wait_for("2 (2 NoSchedule)")
        listed = piped("rules", env=env)
        cluster.delete("devicetaintrule/counted")
        records.wait_for("tainted  rule/counted")
        records.wait_for("deleted  rule/counted")
        for watch in (screen, records):
            watch.interrupt()
        code = screen.end() or records.end()

    assert code == 130
    assert cut(listed.stdout).splitlines()[1] == (
        "rule/counted  example.com/sick:NoSchedule  2  1 pod keeps running"
        "  T  -  kubernetes-admin  -"
    )


def test_an_eviction_from_pause_to_history(env: dict[str, str], cluster: Cluster) -> None:
    cluster.apply(claim("gone", devices()), pod("gone", "gone", resourceClaimName="gone"))
    cluster.wait("Ready", "pod/gone")
    ((node, device),) = cluster.devices("gone")
    sick = rule("sick", "NoExecute", pool=node, device=device)
    sick["metadata"]["annotations"] = {"sully.dev/paused": "true", "sully.dev/description": "hot"}
    cluster.apply(sick)

    seen = piped("evictions", "-o", "wide", env=env)
    paused = piped("evictions", "pause", "sick", "--reason", "wait", env=env)
    again = piped("evictions", "pause", "sick", "--reason", "wait", env=env)
    with terminal("evictions", "--watch", env=env, columns=160) as screen:
        screen.wait_for("paused")
        resumed = piped("evictions", "resume", "sick", env=env)
        screen.wait_for("done")
        screen.interrupt()
        assert screen.end() == 130
    cluster.gone("gone")
    cluster.delete("devicetaintrule/sick")
    # The record follows the rule, sooner than anyone can look; here only its text matters.
    tries = (piped("history", "rule", "sick", env=env) for _ in range(30))
    reported = next(try_ for try_ in tries if "deleted" in try_.stdout)
    # Its device is free for the next test when the claim is gone.
    cluster.delete("resourceclaim/gone")

    assert cut(seen.stdout).splitlines()[1] == (
        "sick  example.com/sick:NoExecute  paused  1  0  -  -  0  T  1  kubernetes-admin"
        "  hot (paused)"
    )
    assert paused.stdout == (
        "devicetaintrule.resource.k8s.io/sick paused\n  to resume it: sully evictions resume sick\n"
    )
    assert again.stdout == "devicetaintrule.resource.k8s.io/sick already paused\n"
    assert resumed.stdout == "devicetaintrule.resource.k8s.io/sick resumed\n"
    # The last line; before it may be one that shows it at work.
    assert (
        cut(screen.shown).splitlines()[-1].startswith("sick  example.com/sick:NoExecute  done  0")
    )
    assert [line.split("  ", 1)[1] for line in cut(reported.stdout).splitlines()] == [
        "EVENT  OBJECT  DETAILS",
        f"tainted  rule/sick  example.com/sick:NoExecute on */{node}/{device},"
        " by kubernetes-admin: hot",
        "changed  rule/sick  paused: wait, by kubernetes-admin",
        "changed  rule/sick  resumed, by kubernetes-admin",
        f"evicted  pod/default/gone  example.com/sick:NoExecute of rule/sick from {node}",
        "deleted  rule/sick  example.com/sick:NoExecute by kubernetes-admin, 1 pod evicted",
    ]


def test_a_stream_for_programs(env: dict[str, str], cluster: Cluster) -> None:
    with terminal("devices", f"{DRIVER}/worker-0001/gpu-1", "-w", "-o", "json", env=env) as screen:
        screen.wait_for('"ADDED"')
        cluster.apply(rule("notice", "None", pool="worker-0001"))
        screen.wait_for('"MODIFIED"')
        screen.wait_for("\n")
        screen.interrupt()
        screen.end()
    cluster.delete("devicetaintrule/notice")

    first, second = (json.loads(line) for line in screen.shown.splitlines()[:2])
    assert (first["type"], first["device"]["taints"]) == ("ADDED", [])
    assert second["device"]["taints"][0]["origin"] == {"kind": "DeviceTaintRule", "name": "notice"}


def test_a_snapshot_answers_without_the_server(env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    offline = environment(tmp_path / "absent")

    saved = piped("snapshot", str(file), env=env)
    refused = piped("snapshot", str(file), env=env)
    shown = piped("devices", "--snapshot", str(file), env=offline)
    through = piped("snapshot", "-", "-o", "json", env=env)
    again = piped("devices", "--snapshot", "-", env=offline, input_text=through.stdout)

    assert saved.returncode == 0
    assert saved.stderr.startswith(f"{file}: 4 devices, 2 Nodes, 2 Pods, ")
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    assert shown.stdout == again.stdout == DEVICES


def test_what_may_not_be_seen(
    up: Process, env: dict[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    made = piped(
        "kubeconfig", "--data-dir", str(up.data_dir), "--user", "guest", "-o", str(config), env=env
    )
    assert made.returncode == 0, made.stderr
    guest = environment(config)

    done, watched = piped("devices", env=guest), piped("devices", "--watch", env=guest)
    rights = ("--verb=list", "--resource=resourceslices,devicetaintrules")
    cluster.run("create", "clusterrole", "slices", *rights)
    cluster.run("create", "clusterrolebinding", "slices", "--clusterrole=slices", "--user=guest")
    seen = piped("devices", "--no-headers", f"{DRIVER}/worker-0000", env=guest)
    refused = [
        piped("devices", *arguments, env=guest) for arguments in (["--free"], ["--class", "x"])
    ]

    assert done.returncode == 1
    assert done.stderr.startswith("error: resourceslices.resource.k8s.io is forbidden")
    assert "resourceslices are required here; ask an administrator" in done.stderr
    assert (watched.returncode, watched.stderr) == (1, done.stderr)
    # Who may not see claims does not see that a device is free.
    assert [line.split()[-1] for line in seen.stdout.splitlines()] == ["?", "?"]
    assert "not allowed to list deviceclasses, pods, resourceclaims" in seen.stderr
    assert [item.returncode for item in refused] == [1, 1]
    assert "resourceclaims are required here" in refused[0].stderr
    assert "deviceclasses are required here" in refused[1].stderr


def test_a_server_that_is_unreachable(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )

    done = piped("devices", env=environment(config))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: https://127.0.0.1:1/")
    assert done.stderr.endswith(
        "check that the server is running, and that this is the right kubeconfig\n"
    )


def test_a_server_that_is_not_ours(where: str, any_kubectl: Path, tmp_path: Path) -> None:
    with controlled(where, "--store", "memory", "--compat", "reference") as other:
        config = environment(other.kubeconfig)
        Cluster(any_kubectl, other.kubeconfig, tmp_path).apply(rule("sick", "NoExecute", pool="p"))

        reported = piped("history", env=config)
        about = piped("history", "rule", "sick", env=config)
        paused = piped("evictions", "pause", "sick", env=config)
        seen = piped("evictions", env=config)
        brief = ("taint", "device", "d/p/x", "example.com/hot:NoSchedule", "--for", "1h")
        marked = piped(*brief, "--allow-missing", env=config)

    assert marked.returncode == 0
    assert "does not delete expired rules" in marked.stderr
    # It is a hub of clusters, whose taints have a history of their own.
    assert (reported.returncode, "keeps no history of devices" in reported.stderr) == (0, True)
    assert (about.returncode, "keeps no history: it has no" in about.stderr) == (1, True)
    assert paused.returncode == 1
    assert 'cannot pause devicetaintrule "sick"' in paused.stderr
    assert (
        cut(seen.stdout).splitlines()[1]
        == "sick  example.com/sick:NoExecute  done  0  unknown  -  -"
    )
    assert "+ means at least" in seen.stderr


def test_a_pause_without_a_reason_keeps_the_one_given(
    env: dict[str, str], cluster: Cluster
) -> None:
    cluster.apply(rule("kept-reason", "NoExecute", pool="nowhere"))

    first = piped("evictions", "pause", "kept-reason", "--reason", "wait", env=env)
    again = piped("evictions", "pause", "kept-reason", env=env)
    annotations = cluster.get("devicetaintrule", "kept-reason")["metadata"]["annotations"]
    other = piped("evictions", "pause", "kept-reason", "--reason", "night", env=env)
    cluster.delete("devicetaintrule/kept-reason")

    assert first.stdout.startswith("devicetaintrule.resource.k8s.io/kept-reason paused\n")
    assert again.stdout == "devicetaintrule.resource.k8s.io/kept-reason already paused\n"
    assert annotations["sully.dev/paused"] == "wait"
    assert other.stdout.startswith("devicetaintrule.resource.k8s.io/kept-reason paused\n")


def test_a_rule_that_evicts_no_pod_is_not_paused(env: dict[str, str], cluster: Cluster) -> None:
    cluster.apply(rule("idle", "None", pool="nowhere"), rule("idly", "NoExecute", pool="nowhere"))

    named = piped("evictions", "pause", "idle", env=env)
    several = piped("evictions", "pause", "idl*", env=env)
    forced = piped("evictions", "pause", "idle", "--force", env=env)
    cluster.delete("devicetaintrule/idle", "devicetaintrule/idly")

    assert (named.returncode, named.stdout) == (1, "")
    assert named.stderr.startswith(
        'error: cannot pause devicetaintrule "idle": its effect is None, which evicts no pod\n'
    )
    assert several.returncode == 0
    assert several.stdout.startswith("devicetaintrule.resource.k8s.io/idly paused\n")
    assert 'not paused: devicetaintrule "idle"' in several.stderr
    assert forced.stdout.startswith("devicetaintrule.resource.k8s.io/idle paused\n")


def test_a_watch_that_cannot_begin(env: dict[str, str]) -> None:
    done = piped("devices", "--watch", "--class", "none", env=env)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith('error: deviceclass "none" not found\n')


def test_a_watch_shows_when_a_rule_ends_later(env: dict[str, str], cluster: Cluster) -> None:
    pattern = f"{DRIVER}/worker-0001/gpu-1"
    cluster.apply(rule("ending", "None", pool="worker-0001"))
    with terminal("devices", pattern, "--tainted", "--watch", env=env) as screen:
        screen.wait_for("(rule/ending")
        end = {"sully.dev/expires-at": "2099-01-01T00:00:00Z"}
        cluster.annotate("devicetaintrule/ending", end)
        screen.wait_for("expires")
        cluster.delete("devicetaintrule/ending")
        # Not one of those that were asked for any more; on 80 columns, too, where no node is shown.
        screen.wait_for("(gone)")
