"""A good object of every kind, so that requests by name find one."""

from __future__ import annotations

from typing import Any

import yaml

from architecture.project import ROOT
from robust.inputs.test_fuzz import CORE, GOOD, RESOURCE

Obj = dict[str, Any]
NAME = "m"
DEFINITION = "ms.example.com"
"""The only name that a definition with this plural can have."""
APPS = "/apis/apps/v1/namespaces/default"
CLUSTER = "/apis/cluster.open-cluster-management.io"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
SULLY = "/apis/sully.dev/v1alpha1"

_METADATA = {"name": NAME}
_POD = {"containers": [{"name": "c", "image": "i"}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_SUBJECTS = [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]
_TAINT = {"key": "example.com/faulty", "effect": "NoExecute"}
_TIME = "2099-01-01T00:00:00.000000Z"
"""Records of the past are deleted after a month."""


def _spec(**fields: Any) -> Obj:
    return {"metadata": _METADATA, "spec": fields}


def _example(file: str, **fields: Any) -> Obj:
    body: Obj = yaml.safe_load((ROOT / "examples" / f"{file}.yaml").read_text())
    return _spec(**body["spec"] | fields)


def _role(kind: str) -> Obj:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}


_EVENT = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p"}
_SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}

OBJECTS: dict[str, Obj] = {
    **GOOD,
    "/api/v1/namespaces": {"metadata": _METADATA},
    "/api/v1/nodes": {"metadata": _METADATA},
    "/api/v1/persistentvolumes": _spec(
        capacity={"storage": "1Gi"}, accessModes=["ReadWriteOnce"], hostPath={"path": "/x"}
    ),
    f"{CORE}/endpoints": {"metadata": _METADATA},
    f"{CORE}/events": {"metadata": _METADATA, "involvedObject": _EVENT, "reason": "r"},
    f"{CORE}/limitranges": _spec(limits=[{"type": "Container", "default": {"cpu": "1"}}]),
    f"{CORE}/persistentvolumeclaims": _spec(
        accessModes=["ReadWriteOnce"], resources={"requests": {"storage": "1Gi"}}
    ),
    f"{CORE}/podtemplates": {"metadata": _METADATA, "template": _TEMPLATE},
    f"{CORE}/replicationcontrollers": _spec(selector={"a": "b"}, template=_TEMPLATE),
    f"{CORE}/resourcequotas": _spec(hard={"pods": "1000"}),
    f"{CORE}/secrets": {"metadata": _METADATA, "data": {"x": "AAAA"}},
    f"{CORE}/serviceaccounts": {"metadata": _METADATA},
    f"{CORE}/services": _spec(ports=[{"port": 80}]),
    f"{ADMISSION}/validatingadmissionpolicies": _spec(
        matchConstraints={
            "resourceRules": [
                {
                    "apiGroups": ["example.com"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["none"],
                }
            ]
        },
        validations=[{"expression": "true"}],
    ),
    f"{ADMISSION}/validatingadmissionpolicybindings": _spec(
        policyName="none", validationActions=["Audit"]
    ),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ms", "kind": "M"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": _SCHEMA}],
        },
    },
    f"{APPS}/controllerrevisions": {"metadata": _METADATA, "revision": 1, "data": {}},
    f"{APPS}/daemonsets": _spec(**_SELECTED),
    f"{APPS}/replicasets": _spec(**_SELECTED),
    f"{APPS}/statefulsets": _spec(serviceName="s", **_SELECTED),
    "/apis/batch/v1/namespaces/default/jobs": _spec(
        suspend=True, template={"spec": {**_POD, "restartPolicy": "Never"}}
    ),
    f"{CLUSTER}/v1/managedclusters": _spec(hubAcceptsClient=False),
    f"{CLUSTER}/v1alpha1/clusterclaims": _spec(value="v"),
    f"{CLUSTER}/v1alpha1/namespaces/default/addonplacementscores": {"metadata": _METADATA},
    f"{CLUSTER}/v1beta1/namespaces/default/placementdecisions": {"metadata": _METADATA},
    f"{CLUSTER}/v1beta1/namespaces/default/placements": _spec(numberOfClusters=1),
    f"{CLUSTER}/v1beta2/managedclustersets": {"metadata": _METADATA},
    f"{CLUSTER}/v1beta2/namespaces/default/managedclustersetbindings": _spec(clusterSet=NAME),
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": {
        "metadata": _METADATA,
        "addressType": "IPv4",
        "endpoints": [],
    },
    f"{RBAC}/clusterroles": {"metadata": _METADATA, "rules": _RULES},
    f"{RBAC}/clusterrolebindings": {
        "metadata": _METADATA,
        "roleRef": _role("ClusterRole"),
        "subjects": _SUBJECTS,
    },
    f"{RBAC}/namespaces/default/roles": {"metadata": _METADATA, "rules": _RULES},
    f"{RBAC}/namespaces/default/rolebindings": {
        "metadata": _METADATA,
        "roleRef": _role("Role"),
        "subjects": _SUBJECTS,
    },
    f"{RESOURCE}/namespaces/default/resourceclaimtemplates": _spec(
        spec=GOOD[f"{RESOURCE}/namespaces/default/resourceclaims"]["spec"]
    ),
    "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests": _spec(driver="d.example"),
    "/apis/resource.k8s.io/v1alpha3/resourceslicepatches": _spec(
        devices={
            "filter": {"driver": "d.example"},
            "attributes": {"example.com/rack": {"string": "r7"}},
        }
    ),
    f"{SULLY}/clustertaintpolicies": _example("clusters/clustertaintpolicy"),
    f"{SULLY}/devicehealths": _example("devicehealth", nodeName=NAME),
    f"{SULLY}/devicemaintenances": _example("devicemaintenance"),
    f"{SULLY}/devicetaintpolicies": _example("devicetaintpolicy"),
    f"{SULLY}/taintrecords": _spec(rule={"name": "r", "uid": "u"}, taint=_TAINT, addedTime=_TIME),
    f"{SULLY}/namespaces/default/evictionrecords": _spec(
        pod={"namespace": "default", "name": "p", "uid": "u"},
        causes=[{"kind": "DeviceTaintRule", "name": "r", "device": "d/p/x", **_TAINT}],
        evictedTime=_TIME,
    ),
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"metadata": _METADATA, "value": 7},
    f"{STORAGE}/csidrivers": _spec(attachRequired=False),
    f"{STORAGE}/csinodes": _spec(drivers=[]),
    f"{STORAGE}/namespaces/default/csistoragecapacities": {
        "metadata": _METADATA,
        "storageClassName": "s",
    },
    f"{STORAGE}/storageclasses": {"metadata": _METADATA, "provisioner": "p.example"},
    f"{STORAGE}/volumeattachments": _spec(
        attacher="a.example", nodeName="n", source={"persistentVolumeName": "v"}
    ),
}


def name_in(collection: str) -> str:
    """Return the name of the object in a collection."""
    return str(OBJECTS[collection]["metadata"]["name"])


def collection_of(path: str) -> str | None:
    """Return where the object of an operation is created, whatever version it is about."""
    collection, named, _ = path.partition("/{name}")
    return _COLLECTIONS.get(_kind(collection)) if named else None


def _kind(collection: str) -> tuple[str, str]:
    parts = collection.split("/")
    group = "" if parts[1] == "api" else parts[2]
    # Both groups have the same events.
    return "" if group == "events.k8s.io" else group, parts[-1]


_COLLECTIONS = {_kind(collection): collection for collection in OBJECTS}
