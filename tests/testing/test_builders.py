"""What the builders build is valid: an API server takes every manifest as it is."""

import doctest
from typing import Any

import pytest

from serving import Asgi
from sully.testing import builders
from sully.testing.builders import (
    DRIVER,
    NULL,
    class_,
    cluster,
    cluster_set,
    cluster_taint,
    device,
    exists,
    manifest,
    patch,
    pod,
    rule,
    select,
    set_binding,
    slice_,
    taint,
    text,
)

DEVICES = "/apis/resource.k8s.io/v1"
CLUSTERS = "/apis/cluster.open-cluster-management.io"
MANIFESTS: dict[str, tuple[str, Any]] = {
    "pod": ("/api/v1/namespaces/default/pods", pod("p", "claim-1")),
    "slice": (f"{DEVICES}/resourceslices", slice_("s", device("gpu-0", taint(), model=text("a")))),
    "slice of all nodes": (f"{DEVICES}/resourceslices", slice_("s", device(), node=None)),
    "rule": (f"{DEVICES}/devicetaintrules", rule("r", select(driver=DRIVER))),
    "rule for no device": (f"{DEVICES}/devicetaintrules", rule("r", select(), taint("None"))),
    "device class": (f"{DEVICES}/deviceclasses", class_("gpu", f'device.driver == "{DRIVER}"')),
    "patch": (
        "/apis/resource.k8s.io/v1alpha3/resourceslicepatches",
        patch("p", filter_=select(driver=DRIVER), attributes={f"{DRIVER}/model": NULL}),
    ),
    "cluster": (f"{CLUSTERS}/v1/managedclusters", cluster("eu-1", cluster_taint())),
    "cluster set": (f"{CLUSTERS}/v1beta2/managedclustersets", cluster_set("prod")),
    "set binding": (
        f"{CLUSTERS}/v1beta2/namespaces/default/managedclustersetbindings",
        set_binding("prod", "default"),
    ),
}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("path", "obj"), MANIFESTS.values(), ids=MANIFESTS)
async def test_manifests_are_accepted(calm: Asgi, path: str, obj: Any) -> None:
    stored = (await calm.post(path, manifest(obj), fieldValidation="Strict")).ok(201)

    assert stored["metadata"]["name"] == obj.metadata.name
    assert stored["kind"] == manifest(obj)["kind"]


def test_a_claim_holds_devices_with_their_tolerations() -> None:
    built = builders.claim("c", (builders.GPU, (exists(),)), pods=("p",))

    assert built.status.allocation is not None
    (result,) = built.status.allocation.devices.results
    assert (result.driver, result.pool, result.device) == builders.GPU
    assert result.tolerations == (exists(),)
    assert [consumer.uid for consumer in built.status.reserved_for] == ["uid-p"]


def test_the_examples_hold() -> None:
    assert doctest.testmod(builders).attempted == 4
    assert doctest.testmod(builders).failed == 0
