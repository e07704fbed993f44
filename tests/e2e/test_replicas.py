"""Three replicas on three members of etcd, of which one each is lost while there is work to do."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.raw import Raw
from e2e.watching import Named, running, until
from etcds import Etcd
from manifests import config_map, deployment
from sully.testing.cluster import Process, process

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sully-controllers"
IDENTITY = ("ca.crt", "ca.key", "sa.key")


@dataclass(frozen=True)
class Replica:
    up: Process
    admin: Raw


def start(stack: ExitStack, etcd: Etcd, folder: Path, *, like: Path | None) -> Replica:
    data = folder / "data"
    data.mkdir(parents=True)
    for name in IDENTITY if like is not None else ():
        shutil.copy((like or data) / name, data / name)
    flags = ("--store", str(etcd.address), "--simulated-nodes", "20")
    up = stack.enter_context(process(*flags, data_dir=data))
    return Replica(up, Raw.admin(up.kubeconfig, folder))


@pytest.fixture
def etcd() -> Iterator[Etcd]:
    with Etcd(size=3) as made:
        yield made


@pytest.fixture
def replicas(etcd: Etcd, tmp_path: Path) -> Iterator[list[Replica]]:
    with ExitStack() as stack:
        first = start(stack, etcd, tmp_path / "0", like=None)
        others = [
            start(stack, etcd, tmp_path / str(n), like=first.up.data_dir) for n in range(1, 3)
        ]
        yield [first, *others]


def uids(pods: Named) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods.values()}


def leader(replicas: list[Replica]) -> Replica:
    holder = replicas[0].admin.request("GET", LEASE).json()["spec"]["holderIdentity"]
    return next(replica for replica in replicas if f"_{replica.up.child.pid}_" in holder)


def test_what_one_acknowledges_the_others_show_immediately(replicas: list[Replica]) -> None:
    around = itertools.cycle(replicas)
    for n in range(20):
        writer, reader, changer = next(around), next(around), next(around)
        made = writer.admin.request("POST", MAPS, config_map(f"m-{n}"))
        assert made.code == 201
        assert reader.admin.request("GET", f"{MAPS}/m-{n}").json() == made.json()
        assert reader.admin.request("POST", MAPS, config_map(f"m-{n}")).code == 409
        changed = changer.admin.request("PUT", f"{MAPS}/m-{n}", {**made.json(), "data": {"a": "b"}})
        assert changed.code == 200
        version = made.json()["metadata"]["resourceVersion"]
        with writer.admin.open("GET", f"{MAPS}?watch=true&resourceVersion={version}") as watch:
            event = json.loads(watch.readline())
        assert (event["type"], event["object"]) == ("MODIFIED", changed.json())
        assert writer.admin.request("DELETE", f"{MAPS}/m-{n}").code == 200
        assert reader.admin.request("GET", f"{MAPS}/m-{n}").code == 404
        next(around)


LOSSES = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}


@pytest.mark.parametrize("how", LOSSES)
def test_controllers_move_and_nothing_is_lost_or_done_twice(
    how: str, etcd: Etcd, replicas: list[Replica]
) -> None:
    assert replicas[1].admin.request("POST", DEPLOYMENTS, deployment("web", 60)).code == 201
    before = uids(until(replicas[2].admin, PODS, running(60)))
    lost = leader(replicas)
    one, two = (replica for replica in replicas if replica is not lost)
    made = [one.admin.request("POST", MAPS, config_map(f"m-{n}")).code for n in range(20)]

    lost.up.child.send_signal(LOSSES[how])
    etcd.kill(etcd.members[0])

    made += [two.admin.request("POST", MAPS, config_map(f"m-{n}")).code for n in range(20, 40)]
    scale = {"spec": {"replicas": 100}}
    merge = "application/merge-patch+json"
    assert one.admin.request("PATCH", f"{DEPLOYMENTS}/web", scale, merge).code == 200
    grown = uids(until(two.admin, PODS, running(100)))
    if how == "frozen":
        # It wakes up believing that it leads.
        lost.up.child.send_signal(signal.SIGCONT)
        assert lost.admin.request("GET", f"{MAPS}/m-39").code == 200
    after = until(one.admin, PODS, running(100))

    assert made == [201] * 40
    names = {item["metadata"]["name"] for item in two.admin.request("GET", MAPS).json()["items"]}
    assert {f"m-{n}" for n in range(40)} <= names
    assert before < grown == uids(after)
    assert leader([one, two]) in (one, two)


def test_a_replica_with_another_identity_or_the_same_folder_is_refused(
    etcd: Etcd, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        first = start(stack, etcd, tmp_path / "0", like=None)
        with pytest.raises(RuntimeError, match=f"is in use by process {first.up.child.pid}"):
            stack.enter_context(process("--store", str(etcd.address), data_dir=first.up.data_dir))
        with pytest.raises(RuntimeError, match=r"copy ca\.crt, ca\.key and sa\.key"):
            start(stack, etcd, tmp_path / "1", like=None)
