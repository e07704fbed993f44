"""Volumes of pods; how containers mount them is in mounts.py.

Only the sources that pods name directly are looked into; whether what they point at exists is
for the node to find out.
"""

from collections.abc import Callable, Collection
from typing import Any

from sully.api.core.checks import Errors, dns_label, one_of
from sully.api.core.pods.spec.environment import amount_ref, field_ref
from sully.api.core.pods.spec.paths import descending, no_backsteps
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import parse_quantity

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
_SOURCES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder"),
    *("cephfs", "quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos"),
    *("projected", "scaleIO", "csi", "ephemeral", "image"),
)
"""All sources, in the order in which they are checked; a volume has one."""
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


def volumes(values: list[Obj], at: Path) -> tuple[dict[str, Obj], list[FieldError]]:
    """Check the volumes; return those that are fine, by name, and what is wrong."""
    known: dict[str, Obj] = {}
    problems: list[FieldError] = []
    for position, volume in enumerate(values):
        errors = [*_volume(volume, known, at.index(position))]
        problems += errors
        if not errors:
            known[volume["name"]] = volume
    return known, problems


def _volume(volume: Obj, names: Collection[str], at: Path) -> Errors:
    sources = sorted(volume.keys() - {"name"}, key=_SOURCES.index)
    for name in sources[:1]:
        # Kubernetes has another name for this source here.
        shown = "persistentDisk" if name == "gcePersistentDisk" else name
        yield from _source(name, volume[name], at.child(shown))
    for name in sources[1:]:
        # Kubernetes writes this one in another way here.
        yield at.child("cephFS" if name == "cephfs" else name).forbidden(MANY)
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
    path = source.get("path", "")
    if not path.startswith("/"):
        yield at.child("path").invalid(path, "must be an absolute path")


def _files(source: Obj, at: Path) -> Errors:
    yield from _mode(source.get("defaultMode"), at.child("defaultMode"))
    yield from _items(source, at)


def _items(source: Obj, at: Path) -> Errors:
    for position, item in enumerate(source.get("items") or ()):
        yield from _item(item, at.child("items").index(position))


def _item(item: Obj, at: Path) -> Errors:
    if not item.get("key"):
        yield at.child("key").required()
    yield from _item_path(item, at)
    yield from _mode(item.get("mode"), at.child("mode"))


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
    for item in source.get("items") or ():
        yield from _downward_item(item, at)


def _downward_item(item: Obj, at: Path) -> Errors:
    # Kubernetes leaves the items out of the paths here.
    yield from _item_path(item, at)
    if "fieldRef" in item:
        yield from field_ref(item["fieldRef"], _SHOWN_FIELDS, at.child("fieldRef"))
        if "resourceFieldRef" in item:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield at.invalid("resource", text)
    elif "resourceFieldRef" in item:
        yield from amount_ref(item["resourceFieldRef"], at.child("resourceFieldRef"))
    else:
        yield at.required("one of fieldRef and resourceFieldRef is required")
    yield from _mode(item.get("mode"), at.child("mode"))


def _projected(source: Obj, at: Path) -> Errors:
    yield from _mode(source.get("defaultMode"), at.child("defaultMode"))
    paths: set[str] = set()
    for position, one in enumerate(source.get("sources") or ()):
        here = at.child("sources").index(position)
        for name in ("secret", "configMap"):
            if name in one:
                yield from _projected_files(one[name], paths, at, here.child(name))
        if "downwardAPI" in one:
            yield from _projected_fields(one["downwardAPI"], paths, at, here.child("downwardAPI"))
        if "serviceAccountToken" in one:
            yield from _token(one["serviceAccountToken"], here.child("serviceAccountToken"))
            # Kubernetes leaves the source out of this path.
            yield from _item_path(one["serviceAccountToken"], at)
        if len(one) > 1:
            yield here.forbidden(f"{MANY} per source")


def _projected_files(source: Obj, paths: set[str], volume: Path, at: Path) -> Errors:
    if not source.get("name"):
        yield at.child("name").required()
    for position, item in enumerate(source.get("items") or ()):
        yield from _item(item, at.child("items").index(position))
        yield from _free_path(item, paths, volume, source.get("name", ""))


def _projected_fields(source: Obj, paths: set[str], volume: Path, at: Path) -> Errors:
    for item in source.get("items") or ():
        yield from _downward_item(item, at)
        yield from _free_path(item, paths, volume, item.get("path", ""))


def _free_path(item: Obj, paths: set[str], at: Path, shown: str) -> Errors:
    path = item.get("path", "")
    if path and path in paths:
        yield at.invalid(shown, "conflicting duplicate paths")
    paths.add(path)


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
