"""Every field of a pod that names another object is known to the visitor."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import manifests
from api.core.writing import TABLES
from sully.api.core.pods.references import Reference, references
from sully.machinery.schema import ListOf, MapOf, ObjectType, Scalar, Type

Obj = dict[str, Any]
CORE = "io.k8s.api.core.v1"
NAMING_TYPE = re.compile(r"(Reference|KeySelector|EnvSource|VolumeSource|Projection|Claim)$")
NAMING_FIELD = re.compile(
    r"(?i)(secret|claim|configMap|serviceAccount|trustBundle).*name$|^endpoints$"
)

# Sources of volumes that name no object, or only in a field of their own that is tried as well.
PLAIN = frozenset(
    [
        "awsElasticBlockStore",
        "azureDisk",
        "cephfs",
        "cinder",
        "downwardAPI",
        "emptyDir",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    ]
)
# A volume or claim among those of the same pod; the list of projections, each tried by itself.
IN_THE_POD = frozenset(("fileKeyRef", "claims", "sources"))


def _fields(kind: Type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Type]]:
    """Go through every field below a type."""
    match kind:
        case ObjectType():
            for field in kind.fields.values():
                # Selectors of labels and the metadata of templates name nothing.
                if not (isinstance(field.type, ObjectType) and "meta" in field.type.package):
                    yield (*path, field.name), field.type
                    yield from _fields(field.type, (*path, field.name))
        case ListOf(item) | MapOf(item):
            yield from _fields(item, (*path, "[]") if isinstance(kind, ListOf) else path)
        case _:
            return


def _names_an_object(path: tuple[str, ...], kind: Type) -> bool:
    while isinstance(kind, ListOf):
        kind = kind.item
    if path[-1] in PLAIN | IN_THE_POD:
        return False
    if isinstance(kind, ObjectType):
        return bool(NAMING_TYPE.search(kind.name))
    return kind == Scalar("string") and bool(NAMING_FIELD.search(path[-1]))


def _sample(kind: Type) -> Any:
    """Return a value with every text of its own set, and nothing below."""
    match kind:
        case ListOf(item):
            return [_sample(item)]
        case ObjectType():
            return {
                field.name: "x" for field in kind.fields.values() if field.type == Scalar("string")
            }
        case _:
            return "x"


def _pod(path: tuple[str, ...], kind: Type) -> Obj:
    value = _sample(kind)
    for name in reversed(path):
        value = [{"name": "x"} | value] if name == "[]" else {name: value}
    return manifests.pod("p", value)


NAMING = {
    ".".join(path).replace(".[]", "[]"): _pod(path, kind)
    for path, kind in _fields(TABLES.get(CORE, "PodSpec"))
    if _names_an_object(path, kind)
}


def test_the_walk_finds_what_is_known() -> None:
    known = {
        "containers[].env[].valueFrom.secretKeyRef",
        "ephemeralContainers[].envFrom[].configMapRef",
        "imagePullSecrets",
        "resourceClaims",
        "volumes[].csi.nodePublishSecretRef",
        "volumes[].projected.sources[].podCertificate",
        "volumes[].storageos.secretRef",
    }

    assert known <= NAMING.keys()


@pytest.mark.parametrize("pod", NAMING.values(), ids=NAMING.keys())
def test_a_field_that_names_an_object_is_a_reference(pod: Obj) -> None:
    assert list(references(pod))


def test_a_pod_without_references() -> None:
    spec = {
        "containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}],
        "volumes": [{"name": name, name: {}} for name in PLAIN],
    }

    assert list(references({"metadata": {"name": "p"}, "spec": spec})) == []


SECRET = Reference("secrets", "s")
CASES: dict[str, tuple[Obj, list[Reference]]] = {
    "account": ({"serviceAccountName": "a"}, [Reference("serviceaccounts", "a")]),
    "image pull secret": ({"imagePullSecrets": [{"name": "s"}]}, [SECRET]),
    "environment": (
        {
            "initContainers": [
                {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
            ],
            "containers": [{"envFrom": [{"configMapRef": {"name": "m"}}]}],
        },
        [SECRET, Reference("configmaps", "m")],
    ),
    "claims": (
        {"resourceClaims": [{"name": "a", "resourceClaimName": "c"}, {"name": "b"}]},
        [Reference("resourceclaims", "c"), Reference("resourceclaims")],
    ),
    "secret of a driver": (
        {"volumes": [{"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}]},
        [SECRET, Reference("csidrivers", "d", "CSI volumes")],
    ),
    "ephemeral claim": (
        {"volumes": [{"name": "v", "ephemeral": {}}]},
        [Reference("persistentvolumeclaims", "p-v", "ephemeral volumes")],
    ),
    "projected": (
        {
            "volumes": [
                {
                    "projected": {
                        "sources": [
                            {"downwardAPI": {}},
                            {"secret": {"name": "s"}},
                            {"serviceAccountToken": {"path": "t"}},
                        ]
                    }
                }
            ]
        },
        [
            Reference("secrets", "s", "projected volumes"),
            Reference("serviceaccounts", "", "projected volumes"),
        ],
    ),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES.keys())
def test_references(spec: Obj, want: list[Reference]) -> None:
    assert list(references({"metadata": {"name": "p"}, "spec": spec})) == want
