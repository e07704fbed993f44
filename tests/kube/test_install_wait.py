"""`sully install --apply` shows why the controllers do not start."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from kube.control_plane import poll
from kube.process import Foreign
from sully.testing.forkserver import start

NAMESPACE = "sully-waiting"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WORDS = ("install", "--apply", "--image", "sully:none", "--namespace", NAMESPACE, "--replicas", "1")
MESSAGE = 'Back-off pulling image "sully:none"'
WAITING = {
    "name": "controllers",
    "image": "sully:none",
    "imageID": "",
    "ready": False,
    "restartCount": 0,
    "state": {"waiting": {"reason": "ImagePullBackOff", "message": MESSAGE}},
}


@pytest.fixture
def pod(there: Foreign) -> Iterator[str]:
    """Install without waiting; return the pod that nothing starts."""
    done = there.sully(*WORDS, "--timeout", "0s")
    assert done.returncode == 0, done.stderr
    admin = there.admin()
    poll(lambda: bool(admin.request("GET", PODS).json()["items"]))
    (result,) = admin.request("GET", PODS).json()["items"]
    yield result["metadata"]["name"]
    admin.request("DELETE", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/sully-controllers")


def test_an_image_that_cannot_be_pulled(there: Foreign, pod: str) -> None:
    _report(there, pod)
    with _installing(there) as child:
        assert child.stderr is not None
        result = next(line for line in child.stderr if "ImagePullBackOff" in line)
        child.send_signal(signal.SIGINT)
        child.communicate()
    ended = there.sully(*WORDS, "--timeout", "1ms")

    assert result == (
        f'waiting for deployment "{NAMESPACE}/sully-controllers": 0 of 1 replicas are ready'
        f" ({pod}: ImagePullBackOff: {MESSAGE})\n"
    )
    assert child.returncode == 130
    assert ended.returncode == 1
    assert f"  pod {pod}: ImagePullBackOff: {MESSAGE}\n" in ended.stderr


def _installing(there: Foreign) -> subprocess.Popen[str]:
    config = ("--kubeconfig", str(there.kubeconfig), "--timeout", "1h")
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return start(*WORDS, *config, **pipes)


def _report(there: Foreign, pod: str) -> None:
    """Report as a kubelet does."""
    patch = {"status": {"containerStatuses": [WAITING]}}
    kind = "application/strategic-merge-patch+json"
    answer = there.admin().request("PATCH", f"{PODS}/{pod}/status", patch, kind)
    assert answer.code == 200, answer.body
