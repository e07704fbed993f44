"""Which other API objects a pod refers to: one visitor over the whole spec.

The node authorizer opens these objects to the node that the pod runs on; pods that a node creates
itself may refer to none of them. A test walks the field table of Pod, so that a new field which
names an object cannot be forgotten here.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

Obj = dict[str, Any]


class Reference(NamedTuple):
    """One object that a pod refers to; where only its kind is known, the name is empty."""

    resource: str
    name: str = ""
    via: str = ""  # what error texts add


_SECRET_REF = ("secretRef", "name")
# Source of a volume → resource, path of the name, and what error texts add.
_VOLUMES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "azureFile": ("secrets", ("secretName",), "azureFile volumes"),
    "cephfs": ("secrets", _SECRET_REF, ""),
    "cinder": ("secrets", _SECRET_REF, ""),
    "configMap": ("configmaps", ("name",), "configmap volumes"),
    "csi": ("secrets", ("nodePublishSecretRef", "name"), ""),
    "flexVolume": ("secrets", _SECRET_REF, ""),
    "glusterfs": ("endpoints", ("endpoints",), "glusterFS volumes"),
    "iscsi": ("secrets", _SECRET_REF, ""),
    "persistentVolumeClaim": ("persistentvolumeclaims", ("claimName",), ""),
    "rbd": ("secrets", _SECRET_REF, ""),
    "scaleIO": ("secrets", _SECRET_REF, ""),
    "secret": ("secrets", ("secretName",), "secret volumes"),
    "storageos": ("secrets", _SECRET_REF, ""),
}
# Source of a projected volume → resource, field with the name, and what error texts add.
_PROJECTED: dict[str, tuple[str, str, str]] = {
    "clusterTrustBundle": ("clustertrustbundles", "name", ""),
    "configMap": ("configmaps", "name", "projected volumes"),
    "podCertificate": ("podcertificates", "", ""),
    "secret": ("secrets", "name", "projected volumes"),
    "serviceAccountToken": ("serviceaccounts", "", "projected volumes"),
}
# Sources that name an object as a whole even where the name is missing.
_ALWAYS = frozenset(("azureFile", "configMap", "glusterfs", "persistentVolumeClaim", "secret"))


def references(pod: Obj) -> Iterator[Reference]:
    """Yield every object in the pod's namespace that its spec refers to."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        yield Reference("serviceaccounts", spec["serviceAccountName"])
    for secret in spec.get("imagePullSecrets") or ():
        yield Reference("secrets", secret.get("name", ""))
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield from _of_container(container)
    for claim in spec.get("resourceClaims") or ():
        yield Reference("resourceclaims", claim.get("resourceClaimName", ""))
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume, pod["metadata"].get("name", ""))


def _of_container(container: Obj) -> Iterator[Reference]:
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            yield from _named(
                source, ("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps")
            )
    for source in container.get("envFrom") or ():
        yield from _named(source, ("secretRef", "secrets"), ("configMapRef", "configmaps"))


def _named(source: Obj, *fields: tuple[str, str]) -> Iterator[Reference]:
    for field, resource in fields:
        if field in source:
            yield Reference(resource, source[field].get("name", ""))


def _of_volume(volume: Obj, pod_name: str) -> Iterator[Reference]:
    for source, value in volume.items():
        if source in _VOLUMES:
            resource, path, via = _VOLUMES[source]
            name = _at(value, path)
            if name or source in _ALWAYS:
                yield Reference(resource, name, via)
        if source == "csi":
            yield Reference("csidrivers", value.get("driver", ""), "CSI volumes")
        elif source == "ephemeral":
            # As the controller names the claim that it creates.
            name = f"{pod_name}-{volume['name']}"
            yield Reference("persistentvolumeclaims", name, "ephemeral volumes")
        elif source == "projected":
            for projection in value.get("sources") or ():
                yield from _of_projection(projection)


def _of_projection(projection: Obj) -> Iterator[Reference]:
    for source, value in projection.items():
        if source in _PROJECTED:
            resource, field, via = _PROJECTED[source]
            yield Reference(resource, value.get(field, "") if field else "", via)


def _at(value: Obj, path: tuple[str, ...]) -> str:
    part: Any = value
    for name in path:
        part = (part or {}).get(name)
    return part or ""
