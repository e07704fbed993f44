"""What is wrong with the containers of a pod."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from sully.api.core.checks import Errors, dns_label, one_of
from sully.api.core.pods.creation.defaults import PROBES
from sully.api.core.pods.spec import environment
from sully.api.core.pods.spec.mounts import devices, mounts
from sully.api.core.pods.spec.ports import host_ports, ports
from sully.api.core.pods.spec.probes import lifecycle, probe
from sully.api.core.pods.spec.resources import requirements
from sully.api.core.pods.spec.restarts import (
    only_sidecars_restart,
    resize,
    restart,
    restart_first,
)
from sully.api.core.pods.spec.security import container_security
from sully.machinery.fields import Path

Obj = dict[str, Any]

_MESSAGES = ("File", "FallbackToLogsOnError")
_EPHEMERAL = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
"""Fields that only other containers can have, in the order of the errors."""
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"


class PodNames(msgspec.Struct, frozen=True):
    """What containers of a pod can use, by name, and what holds for all of them."""

    volumes: Mapping[str, Obj]
    claims: Collection[str]
    privileged: bool = True
    """Whether containers may have all rights on their node."""
    restart_policy: str = ""
    host_users: bool = True
    grace: int | None = None
    """How many seconds the pod has to end."""


def containers(values: list[Obj], pod_names: PodNames, at: Path) -> Errors:
    """Check the containers that run side by side."""
    if not values:
        yield at.required()
        return
    names: set[str] = set()
    for position, container in enumerate(values):
        here = at.index(position)
        yield from _common(container, pod_names, here)
        yield from _unique_name(container, names, here)
        yield from _life(container, pod_names, here)
        yield from restart(container, here)
    yield from host_ports(values, at)


def init_containers(values: list[Obj], taken: set[str], pod_names: PodNames, at: Path) -> Errors:
    """Check the containers that run first; `taken` are the names of the others."""
    names = set(taken)
    for position, container in enumerate(values):
        here = at.index(position)
        yield from _common(container, pod_names, here)
        yield from restart_first(container, here)
        yield from _unique_name(container, names, here)
        if not container.get("name"):
            names -= {""} - taken
        # They run one by one, and Kubernetes looks at a list that has only this one.
        yield from host_ports([container], at)
        if container.get("restartPolicy") == "Always":
            yield from _life(container, pod_names, here)
        else:
            for name in ("lifecycle", *PROBES):
                if name in container:
                    yield here.child(name).forbidden(_ONLY_SIDECARS)
            yield from only_sidecars_restart(container, here)


def ephemeral_containers(
    values: list[Obj], taken: set[str], pod_names: PodNames, at: Path
) -> Errors:
    """Check the containers for debugging; `taken` are the names of all others."""
    names = set(taken)
    for position, container in enumerate(values):
        here = at.index(position)
        yield from _common(container, pod_names, here)
        yield from images_of_pods([container], at, position)
        yield from _unique_name(container, names, here)
        target = container.get("targetContainerName", "")
        if target and target not in taken:
            yield here.child("targetContainerName").not_found(target)
        for name in _NOT_EPHEMERAL:
            # Whatever was given counts, also an empty hook; resources are always there.
            if container.get(name) if name == "resources" else name in container:
                yield here.child(name).forbidden(_EPHEMERAL)
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    path = here.child("volumeMounts").index(number).child(name)
                    yield path.forbidden(_EPHEMERAL)


def images_of_pods(values: list[Obj], at: Path, start: int = 0) -> Errors:
    """Check what is required of pods but not of templates."""
    for position, container in enumerate(values, start):
        image = container.get("image", "")
        if image != image.strip():
            text = "must not have leading or trailing whitespace"
            yield at.index(position).child("image").invalid(image, text)


def _common(container: Obj, pod_names: PodNames, at: Path) -> Errors:
    if not container.get("name"):
        yield at.child("name").required()
    else:
        yield from dns_label(container["name"], at.child("name"))
    if not container.get("image"):
        yield at.child("image").required()
    here = at.child("terminationMessagePolicy")
    policy = container.get("terminationMessagePolicy", "")
    if not policy:
        yield here.required()
    elif policy not in _MESSAGES:
        yield here.not_supported(policy, _MESSAGES)
    yield from ports(container.get("ports") or [], at.child("ports"))
    yield from environment.variables(container.get("env") or [], at.child("env"))
    yield from environment.sources(container.get("envFrom") or [], at.child("envFrom"))
    yield from mounts(container, pod_names.volumes, at.child("volumeMounts"))
    yield from devices(container, pod_names.volumes, at.child("volumeDevices"))
    pull = ("Always", "IfNotPresent", "Never")
    policy = container.get("imagePullPolicy", "")
    yield from one_of(policy, pull, at.child("imagePullPolicy"), required=True)
    yield from requirements(container["resources"], pod_names.claims, at.child("resources"))
    policies = container.get("resizePolicy") or []
    yield from resize(policies, pod_names.restart_policy, at.child("resizePolicy"))
    context, here = container.get("securityContext"), at.child("securityContext")
    if not pod_names.privileged and context is not None and context.get("privileged"):
        yield here.child("privileged").forbidden("disallowed by cluster policy")
    yield from container_security(context, here, host_users=pod_names.host_users)


def _unique_name(container: Obj, names: set[str], at: Path) -> Errors:
    name = container.get("name", "")
    if name in names:
        yield at.child("name").duplicate(name)
    names.add(name)


def _life(container: Obj, pod_names: PodNames, at: Path) -> Errors:
    if "lifecycle" in container:
        yield from lifecycle(container["lifecycle"], at.child("lifecycle"), pod_names.grace)
    for name in PROBES:
        if name in container:
            yield from probe(container[name], name, at.child(name))
