"""The defaults of a pod.

`default_spec` holds for pods and for templates of pods; `default_pod` adds what only pods get.
What depends on the rest of the cluster (service account, priority) is in admission.py.
"""

from typing import Any

from sully.api.core.amounts import round_up
from sully.api.core.pods.images import pull_policy

Obj = dict[str, Any]

_SPEC = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
GRACE_SECONDS = 30
_FILE_MODE = 0o644
# Fields that a source gets when they are absent or empty.
_SOURCES: dict[str, dict[str, Any]] = {
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_TOKEN_SECONDS = 3600


def default_spec(spec: Obj) -> None:
    """Fill in a pod spec, in a pod or in a template."""
    for name, value in _SPEC.items():
        if not spec.get(name):
            spec[name] = value
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    mirror_service_account(spec)
    round_up(spec.get("overhead") or {})
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for container in every_container(spec):
        default_container(container)


def mirror_service_account(spec: Obj) -> None:
    """Write the account under its old name too; the new name wins."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def every_container(spec: Obj) -> list[Obj]:
    """Return containers of all sorts."""
    names = ("initContainers", "containers", "ephemeralContainers")
    return [container for name in names for container in spec.get(name) or ()]


def default_container(container: Obj) -> None:
    """Fill in one container."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        default_field_ref(source.get("fieldRef"))
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    for name in ("limits", "requests"):
        round_up(container["resources"].get(name) or {})
    _default_checks(container)


def _default_checks(container: Obj) -> None:
    for name in PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        for field, value in _PROBE.items():
            if not probe.get(field):
                probe[field] = value
        _default_http(probe.get("httpGet"))
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        _default_http((lifecycle.get(name) or {}).get("httpGet"))


def _default_http(action: Obj | None) -> None:
    if action is None:
        return
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


def default_pod(spec: Obj) -> None:
    """Fill in what pods get and templates do not: templates stay as their author wrote them."""
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            _request_limits(container["resources"])
            if spec.get("hostNetwork"):
                _use_host_ports(container)
    spec.setdefault("enableServiceLinks", True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _request_limits(resources: Obj) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = limits | (resources.get("requests") or {})


def _use_host_ports(container: Obj) -> None:
    for port in container.get("ports") or ():
        if not port.get("hostPort"):
            port["hostPort"] = port["containerPort"]


def default_volume(volume: Obj) -> None:
    """Fill in one volume; one without any source becomes an empty directory."""
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source, values in _SOURCES.items():
        if source in volume:
            for name, value in values.items():
                volume[source].setdefault(name, value)
    _default_items(volume.get("downwardAPI"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        _default_items(source.get("downwardAPI"))
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_SECONDS)
    if "image" in volume and not volume["image"].get("pullPolicy"):
        volume["image"]["pullPolicy"] = pull_policy(volume["image"].get("reference", ""))
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template:
        template["spec"].setdefault("volumeMode", "Filesystem")


def _default_items(source: Obj | None) -> None:
    for item in (source or {}).get("items") or ():
        default_field_ref(item.get("fieldRef"))


def default_field_ref(reference: Obj | None) -> None:
    """Set the API version of a field reference."""
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"
