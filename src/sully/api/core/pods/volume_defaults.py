"""The defaults of volumes."""

from typing import Any

from sully.api.core.pods.images import pull_policy

Obj = dict[str, Any]

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
