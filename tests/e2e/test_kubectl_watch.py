"""kubectl that waits: watches see changes in order, `wait` ends when its condition comes true."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e import kubectls
from e2e.raw import Raw
from e2e.session import settle
from e2e.shell import Shell
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e
MAIN = [item for item in kubectls.find() if item.main]
with_each_kubectl = pytest.mark.parametrize("kubectl", MAIN, ids=str)
HOT = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: hot}
spec:
  taint: {key: example.com/hot, effect: None}
"""
LEASE = """\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lead}
spec: {holderIdentity: a}
"""
CHANGE = """kubectl patch lease lead --type merge -p '{"spec":{"holderIdentity":"HOLDER"}}'"""


@contextmanager
def following(shell: Shell, command: str) -> "Iterator[subprocess.Popen[str]]":
    """Run a command that continues by itself; end it with the block."""
    with shell.start(f"exec {command}") as child:
        try:
            yield child
        finally:
            child.kill()


def next_lines(child: "subprocess.Popen[str]", shell: Shell, number: int) -> list[str]:
    """Read so many lines; a watch that prints too little is ended by kubectl's own deadline."""
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(number)]
    return [" ".join(settle(line, shell.namespace).split()) for line in lines]


@with_each_kubectl
def test_get_watch_shows_what_happens_in_order(shell: Shell) -> None:
    (shell.folder / "lease.yaml").write_text(LEASE)
    shell.run("kubectl create -f lease.yaml")

    with following(shell, f"kubectl get leases -w --request-timeout={PATIENCE}s") as watch:
        first = next_lines(watch, shell, 2)
        for step in (
            CHANGE.replace("HOLDER", "b"),
            CHANGE.replace("HOLDER", "c"),
            "kubectl delete lease lead",
            "kubectl create -f lease.yaml",
        ):
            shell.run(step)
        rest = next_lines(watch, shell, 4)

    assert first == ["NAME HOLDER AGE", "lead a AGE"]
    assert rest == ["lead b AGE", "lead c AGE", "lead c AGE", "lead a AGE"]


@with_each_kubectl
def test_output_watch_events_names_each_kind_of_change(shell: Shell) -> None:
    labelled = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {seen: 'yes'}}\n"
    (shell.folder / "a.yaml").write_text(labelled)
    shell.run("kubectl create -f a.yaml")

    command = (
        f"kubectl get configmaps -l seen -w --output-watch-events --request-timeout={PATIENCE}s"
    )
    with following(shell, command) as watch:
        first = next_lines(watch, shell, 2)
        shell.run("kubectl label configmap a seen=again --overwrite")
        # What no longer fits a selector is gone, as far as its watcher is concerned.
        shell.run("kubectl label configmap a seen-")
        shell.run("kubectl label configmap a seen=yes")
        rest = next_lines(watch, shell, 3)

    assert first == ["EVENT NAME DATA AGE", "ADDED a 0 AGE"]
    assert rest == ["MODIFIED a 0 AGE", "DELETED a 0 AGE", "ADDED a 0 AGE"]


WAITS = {
    "a deletion": (
        f"kubectl wait --for=delete configmap/held --timeout={PATIENCE}s",
        "configmap/held condition met",
    ),
    "the end of its own deletion": (
        f"kubectl delete configmap held --timeout={PATIENCE}s",
        'configmap "held" deleted',
    ),
}


@with_each_kubectl
@pytest.mark.parametrize("what", WAITS)
def test_kubectl_waits_for(what: str, shell: Shell) -> None:
    command, reported = WAITS[what]
    held = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}"
    shell.run(
        f"printf '{held}' | kubectl create -f - && kubectl delete configmap held --wait=false"
    )

    # At this level kubectl reports its requests: it watches now.
    with following(shell, f"{command} -v=6") as waiting:
        assert waiting.stdout is not None
        before = list(itertools.takewhile(lambda line: "watch=true" not in line, waiting.stdout))
        shell.run(
            """kubectl patch configmap held --type merge -p '{"metadata":{"finalizers":[]}}'"""
        )
        after, _ = waiting.communicate(timeout=PATIENCE)

    printed = [line.rstrip() for line in [*before, *after.splitlines()] if reported in line]
    assert (printed, waiting.returncode) == ([reported], 0)


@with_each_kubectl
def test_kubectl_waits_for_a_condition(shell: Shell, raw: Raw) -> None:
    (shell.folder / "hot.yaml").write_text(HOT)
    shell.run("kubectl create -f hot.yaml")
    condition = {
        "type": "EvictionInProgress",
        "status": "False",
        "reason": "Completed",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }

    command = "kubectl wait --for=condition=EvictionInProgress=false devicetaintrule/hot"
    with shell.start(f"{command} --timeout={PATIENCE}s") as child:
        raw.request(
            "PATCH",
            "/apis/resource.k8s.io/v1/devicetaintrules/hot/status",
            {"status": {"conditions": [condition]}},
            "application/merge-patch+json",
        )
        reported, _ = child.communicate(timeout=PATIENCE)

    assert (reported, child.returncode) == (
        "devicetaintrule.resource.k8s.io/hot condition met\n",
        0,
    )
