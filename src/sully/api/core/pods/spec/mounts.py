"""How containers mount the volumes of their pod, as files or as block devices."""

from collections.abc import Mapping
from typing import Any

from sully.api.core.checks import Errors, one_of
from sully.api.core.pods.spec.paths import descending, has_backsteps
from sully.machinery.fields import Path

Obj = dict[str, Any]

_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
_ONLY = "may only be specified when "
_NOT_A_BLOCK = (
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
)


def mounts(container: Obj, known: Mapping[str, Obj], at: Path) -> Errors:
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
        if "recursiveReadOnly" in mount:
            yield from _recursive(mount, at.child("recursiveReadOnly"))


def _propagation(way: str, container: Obj, at: Path) -> Errors:
    at = at.child("mountPropagation")
    yield from one_of(way, ("Bidirectional", "HostToContainer", "None"), at)
    if way == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield at.forbidden(
            "Bidirectional mount propagation is available only to privileged containers"
        )


def _mount(
    mount: Obj, known: Mapping[str, Obj], paths: set[str], devices: list[Obj], at: Path
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


def _recursive(mount: Obj, at: Path) -> Errors:
    way = mount["recursiveReadOnly"]
    yield from one_of(way, _RECURSIVE, at)
    if way not in ("Enabled", "IfPossible"):
        return
    if not mount.get("readOnly"):
        yield at.forbidden(f"{_ONLY}readOnly is true")
    if mount.get("mountPropagation", "None") != "None":
        yield at.forbidden(f"{_ONLY}mountPropagation is None or not specified")


def devices(container: Obj, known: Mapping[str, Obj], at: Path) -> Errors:
    """Check the block devices of one container against the volumes of its pod."""
    mounted = container.get("volumeMounts") or []
    names: set[str] = set()
    paths: set[str] = set()
    for position, device in enumerate(container.get("volumeDevices") or ()):
        here, name = at.index(position), device.get("name", "")
        yield from _device_name(name, known, names, here.child("name"))
        yield from _device_path(device.get("devicePath", ""), paths, here.child("devicePath"))
        yield from _not_mounted(device, mounted, here)
        names |= {name} - {""}


def _device_name(name: str, known: Mapping[str, Obj], names: set[str], at: Path) -> Errors:
    if not name:
        yield at.required()
    if name in names:
        yield at.invalid(name, "must be unique")
    if name not in known:
        yield at.not_found(name)
    elif not known[name].keys() & {"persistentVolumeClaim", "ephemeral"}:
        yield at.invalid(name, _NOT_A_BLOCK)


def _device_path(path: str, paths: set[str], at: Path) -> Errors:
    if not path:
        yield at.required()
    if path in paths:
        yield at.invalid(path, "must be unique")
    if has_backsteps(path):
        yield at.invalid(path, "can not contain backsteps ('..')")
    else:
        paths.add(path)


def _not_mounted(device: Obj, mounted: list[Obj], at: Path) -> Errors:
    name, path = device.get("name", ""), device.get("devicePath", "")
    if any(mount.get("name", "") == name for mount in mounted):
        yield at.child("name").invalid(name, "must not already exist in volumeMounts")
    if any(mount.get("mountPath", "") == path for mount in mounted):
        text = "must not already exist as a path in volumeMounts"
        yield at.child("devicePath").invalid(path, text)
