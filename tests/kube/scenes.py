"""What is in a cluster with devices, in whichever version its server has them."""

from __future__ import annotations

from typing import Any

from e2e.raw import Raw
from e2e.watching import until
from kube.process import Foreign
from manifests import gpus, node, pod_spec, slice_

Obj = dict[str, Any]
DRIVER = "gpu.example.com"
PODS = "/api/v1/namespaces/team/pods"
OURS = "/apis/sully.dev/v1alpha1"
PATCHES = f"{OURS}/resourceslicepatches"
MERGE = "application/merge-patch+json"


class Scene:
    """A cluster with one node, some devices, and pods that hold them."""

    def __init__(self, there: Foreign, version: str = "v1", *, devices: int = 3) -> None:
        self.admin: Raw = there.admin()
        self.devices = f"/apis/resource.k8s.io/{version}"
        self._flat = version == "v1beta1"
        self._furnish(devices)

    def make(self, path: str, body: Obj) -> Obj:
        """Create an object."""
        answer = self.admin.request("POST", path, body)
        assert answer.code == 201, answer.body
        made: Obj = answer.json()
        return made

    def start(self, name: str, scheduler: str, **desired_placements: Any) -> None:
        """Create a pod with a device, and wait until it has its node."""
        exactly = {"deviceClassName": "gpu", **desired_placements}
        request = {"name": "gpu", **exactly} if self._flat else {"name": "gpu", "exactly": exactly}
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        self.make(f"{self.devices}/namespaces/team/resourceclaims", claim)
        # A node that only this creates never gets ready on a real server.
        tolerations = [{"operator": "Exists"}]
        spec = pod_spec(name, schedulerName=scheduler, tolerations=tolerations)
        self.make(PODS, {"metadata": {"name": name}, "spec": spec})
        until(self.admin, PODS, lambda pods: bool(pods[name]["spec"].get("nodeName")))

    def wait_until_evicted(self, name: str) -> None:
        """Wait until a pod is evicted."""
        until(
            self.admin,
            PODS,
            lambda pods: name not in pods or "deletionTimestamp" in pods[name]["metadata"],
        )

    def held(self, name: str) -> str:
        """Return the device that a claim got."""
        path = f"{self.devices}/namespaces/team/resourceclaims/{name}"
        status = self.admin.request("GET", path).json()["status"]
        return str(status["allocation"]["devices"]["results"][0]["device"])

    def _furnish(self, count: int) -> None:
        self.make("/api/v1/nodes", node("n1"))
        attributes = {"model": {"string": "a100"}}
        content: Obj = {"attributes": attributes}
        devices = [
            {**gpu, **({"basic": content} if self._flat else content)} for gpu in gpus(count)
        ]
        spec = slice_("s", "n1", *devices, driver=DRIVER)["spec"]
        self.make(f"{self.devices}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
        model = f'device.attributes["{DRIVER}"].model == "a100"'
        chosen = {"selectors": [{"cel": {"expression": model}}]}
        self.make(f"{self.devices}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": chosen})
        self.make("/api/v1/namespaces", {"metadata": {"name": "team"}})
        accounts = "/api/v1/namespaces/team/serviceaccounts"
        until(self.admin, accounts, lambda result: "default" in result)
