"""Volumes of pods and how containers mount them.

Only the sources that pods name directly are looked into; whether what they point at exists is
for the node to find out.
"""

from collections.abc import Callable, Collection
from typing import Any

from sully.api.core.checks import Errors, dns_label, one_of
from sully.api.core.pods.spec.environment import amount_ref, field_ref
from sully.machinery.fields import FieldError, Path
from sully.machinery.quantity import parse_quantity

Obj = dict[str, Any]

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
# Required fields of a source.
_REQUIRED = {
    "awsElasticBlockStore": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "configMap": ("name",),
    "csi": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "glusterfs": ("endpoints", "path"),
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "secret": ("secretName",),
}
MANY = "may not specify more than 1 volume type"

_SHOWN_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 2**32


def volumes(values: list[Obj], at: Path) -> tuple[set[str], list[FieldError]]:
    """Check the volumes; return the names of those that are fine, and what is wrong."""
    names: set[str] = set()
    problems: list[FieldError] = []
    for position, volume in enumerate(values):
        errors = [*_volume(volume, names, at.index(position))]
        problems += errors
        if not errors:
            names.add(volume["name"])
    return names, problems


def _volume(volume: Obj, names: Collection[str], at: Path) -> Errors:
    sources = [name for name in volume if name != "name"]
    for name in sources[1:]:
        yield at.child(name).forbidden(MANY)
    for name in sources[:1]:
        yield from _source(name, volume[name], at.child(name))
    if not sources:
        yield at.required("must specify a volume type")
    name = volume.get("name", "")
    if not name:
        yield at.child("name").required()
    else:
        yield from dns_label(name, at.child("name"))
    if name in names:
        yield at.child("name").duplicate(name)


def _source(kind: str, source: Obj, at: Path) -> Errors:
    for name in _REQUIRED.get(kind, ()):
        if not source.get(name):
            yield at.child(name).required()
    if kind in _CHECKS:
        yield from _CHECKS[kind](source, at)


def _empty_dir(source: Obj, at: Path) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).sign() < 0:
        yield at.child("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity")


def _host_path(source: Obj, at: Path) -> Errors:
    if not source.get("path"):
        return
    yield from no_backsteps(source["path"], at.child("path"))
    yield from one_of(source.get("type", ""), _HOST_PATH_TYPES, at.child("type"))


def _nfs(source: Obj, at: Path) -> Errors:
    if source.get("path") and not source["path"].startswith("/"):
        yield at.child("path").invalid(source["path"], "must be an absolute path")


def _files(source: Obj, at: Path) -> Errors:
    yield from _mode(source.get("defaultMode"), at.child("defaultMode"))
    yield from _items(source, at)


def _items(source: Obj, at: Path) -> Errors:
    for position, item in enumerate(source.get("items") or ()):
        here = at.child("items").index(position)
        if not item.get("key"):
            yield here.child("key").required()
        yield from _item_path(item, here)
        yield from _mode(item.get("mode"), here.child("mode"))


def _item_path(item: Obj, at: Path) -> Errors:
    path = item.get("path", "")
    if not path:
        yield at.child("path").required()
    else:
        yield from descending(path, at.child("path"))
        if path.startswith("..") and not path.startswith("../"):
            yield at.child("path").invalid(path, "must not start with '..'")


def _downward(source: Obj, at: Path) -> Errors:
    yield from _mode(source.get("defaultMode"), at.child("defaultMode"))
    # Kubernetes leaves the items out of the paths here.
    for item in source.get("items") or ():
        yield from _item_path(item, at)
        if "fieldRef" in item:
            yield from field_ref(item["fieldRef"], _SHOWN_FIELDS, at.child("fieldRef"))
        elif "resourceFieldRef" in item:
            yield from amount_ref(item["resourceFieldRef"], at.child("resourceFieldRef"))
        else:
            yield at.required("one of fieldRef and resourceFieldRef is required")
        yield from _mode(item.get("mode"), at.child("mode"))


def _projected(source: Obj, at: Path) -> Errors:
    yield from _mode(source.get("defaultMode"), at.child("defaultMode"))
    for position, one in enumerate(source.get("sources") or ()):
        here = at.child("sources").index(position)
        for _ in [*one][1:]:
            yield here.forbidden(f"{MANY} per source")
        for name in ("secret", "configMap"):
            if name in one:
                if not one[name].get("name"):
                    yield here.child(name, "name").required()
                yield from _items(one[name], here.child(name))
        if "downwardAPI" in one:
            yield from _downward(one["downwardAPI"], here.child("downwardAPI"))
        if "serviceAccountToken" in one:
            yield from _token(one["serviceAccountToken"], here.child("serviceAccountToken"))
            # Kubernetes leaves the source out of this path.
            yield from _item_path(one["serviceAccountToken"], at)


def _token(source: Obj, at: Path) -> Errors:
    seconds = source.get("expirationSeconds", _SHORTEST_TOKEN)
    if seconds < _SHORTEST_TOKEN:
        text = "may not specify a duration less than 10 minutes"
        yield at.child("expirationSeconds").invalid(seconds, text)
    if seconds > _LONGEST_TOKEN:
        text = "may not specify a duration larger than 2^32 seconds"
        yield at.child("expirationSeconds").invalid(seconds, text)


_CHECKS: dict[str, Callable[[Obj, Path], Errors]] = {
    "configMap": _files,
    "downwardAPI": _downward,
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "nfs": _nfs,
    "projected": _projected,
    "secret": _files,
}


def _mode(mode: int | None, at: Path) -> Errors:
    if mode is not None and not 0 <= mode <= 0o777:
        yield at.invalid(mode, _MODE)


def no_backsteps(path: str, at: Path) -> Errors:
    """Check that a path has no `..`."""
    if ".." in path.split("/"):
        yield at.invalid(path, "must not contain '..'")


def descending(path: str, at: Path) -> Errors:
    """Check that a path is relative and has no `..`."""
    if path.startswith("/"):
        yield at.invalid(path, "must be a relative path")
    yield from no_backsteps(path, at)


def mounts(container: Obj, known: Collection[str], at: Path) -> Errors:
    """Check the mounts of one container against the volumes of its pod."""
    devices = container.get("volumeDevices") or []
    paths: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        yield from _mount(mount, known, paths, devices, at.index(position))
        paths.add(mount.get("mountPath", ""))
        # Kubernetes leaves the index out here.
        if mount.get("subPath"):
            yield from descending(mount["subPath"], at.child("subPath"))
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                text = "subPathExpr and subPath are mutually exclusive"
                yield at.index(position).child("subPathExpr").invalid(mount["subPathExpr"], text)
            yield from descending(mount["subPathExpr"], at.child("subPathExpr"))
        if "mountPropagation" in mount:
            yield from _propagation(mount["mountPropagation"], container, at)


def _propagation(way: str, container: Obj, at: Path) -> Errors:
    at = at.child("mountPropagation")
    yield from one_of(way, ("Bidirectional", "HostToContainer", "None"), at)
    if way == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield at.forbidden(
            "Bidirectional mount propagation is available only to privileged containers"
        )


def _mount(
    mount: Obj, known: Collection[str], paths: Collection[str], devices: list[Obj], at: Path
) -> Errors:
    name, path = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        yield at.child("name").required()
    if name not in known:
        yield at.child("name").not_found(name)
    if not path:
        yield at.child("mountPath").required()
    if path in paths:
        yield at.child("mountPath").invalid(path, "must be unique")
    if any(device.get("name") == name for device in devices):
        yield at.child("name").invalid(name, "must not already exist in volumeDevices")
    if any(device.get("devicePath") == path for device in devices):
        yield at.child("mountPath").invalid(
            path, "must not already exist as a path in volumeDevices"
        )
