"""The official Python client: its informer and its leader election.

Typed objects, the dynamic client, watches and apply are in `e2e/test_python_client.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes as k8s
import pytest
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from clients.waiting import until
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e


@pytest.fixture
def core(kubeconfig: Path) -> Iterator[k8s.client.CoreV1Api]:
    """Log in with the kubeconfig."""
    with k8s.config.new_client_from_config(str(kubeconfig)) as client:
        yield k8s.client.CoreV1Api(client)


def config_map(name: str, **data: str) -> k8s.client.V1ConfigMap:
    metadata = k8s.client.V1ObjectMeta(name=name, labels={"app": "informed"})
    return k8s.client.V1ConfigMap(metadata=metadata, data=data)


def test_an_informer_keeps_up(core: k8s.client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("before", x="0"))
    results: list[tuple[str, str]] = []
    informer = SharedInformer(
        core.list_namespaced_config_map, namespace=namespace, label_selector="app=informed"
    )
    for kind in (ADDED, MODIFIED, DELETED):
        informer.add_event_handler(
            kind, lambda obj, kind=kind: results.append((kind, obj.metadata.name))
        )
    informer.start()
    try:
        until(lambda: results, "the informer lists")
        core.create_namespaced_config_map(namespace, config_map("a", x="1"))
        core.patch_namespaced_config_map("a", namespace, {"data": {"x": "2"}})
        until(lambda: ("MODIFIED", "a") in results, "the informer hears of a change")
        cached = informer.cache.get_by_key(f"{namespace}/a")
        core.delete_namespaced_config_map("a", namespace)
        until(lambda: ("DELETED", "a") in results, "the informer hears of a deletion")
    finally:
        informer.stop()

    assert cached.data == {"x": "2"}
    assert results == [("ADDED", "before"), ("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [item.metadata.name for item in informer.cache.list()] == ["before"]


class Candidate:
    """A user who wants to lead, and stops on demand."""

    def __init__(self, lock: Any) -> None:
        self.leads, self.stopped, self._crash = (threading.Event() for _ in range(3))
        config = Config(
            lock,
            lease_duration=10,
            renew_deadline=8,
            retry_period=1,
            onstarted_leading=self._lead,
            onstopped_leading=self.stopped.set,
        )
        election = LeaderElection(config)
        self.thread = threading.Thread(target=election.run, daemon=True)
        self.thread.start()

    def _lead(self) -> None:
        self.leads.set()
        self._crash.wait()
        raise RuntimeError("this one gives up")

    def give_up(self) -> None:
        """Stop renewing, as a candidate that crashed would."""
        self._crash.set()


LOCKS = {"lease": LeaseLock, "config map": ConfigMapLock}


@pytest.mark.parametrize("kind", LOCKS.values(), ids=LOCKS.keys())
def test_one_leads_and_another_takes_over(kind: Any, kubeconfig: Path, namespace: str) -> None:
    k8s.config.load_kube_config(str(kubeconfig))
    first = Candidate(kind("leader", namespace, "first"))
    assert first.leads.wait(PATIENCE)
    lock = kind("leader", namespace, "second")
    second = Candidate(lock)
    assert not second.leads.wait(2)

    first.give_up()
    assert first.stopped.wait(PATIENCE)
    assert second.leads.wait(PATIENCE)
    _, record = lock.get("leader", namespace)

    assert record.holder_identity == "second"
    second.give_up()
    assert second.stopped.wait(PATIENCE)
