"""Switching versions of the API on and off."""

import pytest

from sully.api import build_scheme
from sully.machinery.compat import Compat
from sully.machinery.runtimeconfig import RuntimeConfigError, parse_runtime_config

ALL = {
    "resourceclaims": "v1 v1beta2 v1beta1",
    "devicetaintrules": "v1 v1beta2 v1alpha3",
    "resourceslicepatches": "v1alpha3",
    "placements": "v1beta1 v1alpha1",
    "pods": "v1",
}

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "one version": (
        "resource.k8s.io/v1beta1=false",
        {"resourceclaims": "v1 v1beta2"},
    ),
    "as Kubernetes has it": (
        "api/beta=false,api/alpha=0",
        {"resourceclaims": "v1", "devicetaintrules": "v1", "resourceslicepatches": ""},
    ),
    "nothing but what is stored": (
        "api/all=false",
        {"resourceclaims": "v1", "devicetaintrules": "v1", "resourceslicepatches": ""},
    ),
    "a stage counts for more than all": (
        "api/beta=true,api/all=false",
        {"devicetaintrules": "v1 v1beta2", "resourceslicepatches": ""},
    ),
    "a version counts for more than its stage": (
        "resource.k8s.io/v1beta2,api/beta=false",
        {"resourceclaims": "v1 v1beta2"},
    ),
    "kinds of one alpha version are not served": (
        "resource.k8s.io/v1alpha3=false",
        {"devicetaintrules": "v1 v1beta2", "resourceslicepatches": ""},
    ),
    "kinds of the hub of clusters, by name only": (
        "cluster.open-cluster-management.io/v1alpha1=false",
        {"placements": "v1beta1"},
    ),
    "what cannot be switched off can be switched on": ("api/v1=true,apps/v1", {}),
}


@pytest.mark.parametrize(("text", "want"), CASES.values(), ids=CASES.keys())
def test_served(text: str, want: dict[str, str]) -> None:
    scheme = build_scheme(runtime=parse_runtime_config(text))
    served = {
        resource.plural: " ".join(version.name for version in resource.versions if version.enabled)
        for resource in scheme.resources()
    }

    assert {name: served.get(name, "") for name in ALL} == ALL | want


def test_a_version_that_is_off_is_nowhere() -> None:
    scheme = build_scheme(Compat.KUBERNETES, runtime=parse_runtime_config("api/alpha=false"))

    assert "v1alpha3" not in scheme.groups()["resource.k8s.io"]
    assert not scheme.serves("resource.k8s.io", "v1alpha3")
    assert scheme.find("resource.k8s.io", "v1alpha3", "devicetaintrules") is None


REFUSED = {
    "an unknown version": (
        "resource.k8s.io/v2=true",
        r"unknown version resource.k8s.io/v2 \(one of: .*resource.k8s.io/v1beta1",
    ),
    "an unknown stage": ("api/legacy=false", "unknown version api/legacy"),
    "no version at all": ("yes", "unknown version yes"),
    "a value that is none": ("api/beta=maybe", 'api/beta must be true or false, not "maybe"'),
    "what is stored": (
        "resource.k8s.io/v1=false",
        "resource.k8s.io/v1 cannot be switched off: its kinds are stored in it",
    ),
    "the core group": ("api/v1=false", "api/v1 cannot be switched off"),
}


@pytest.mark.parametrize(("text", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text: str, want: str) -> None:
    with pytest.raises(RuntimeConfigError, match=f"--runtime-config: {want}"):
        build_scheme(runtime=parse_runtime_config(text))
