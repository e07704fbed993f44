"""What is wrong with the security contexts of a pod and of its containers.

Nothing here runs containers, but a manifest that Kubernetes refuses should not pass with us.
"""

import re
from typing import Any

from sully.api.core.checks import Errors, as_go, between, one_of
from sully.api.core.pods.spec import windows
from sully.api.core.pods.spec.paths import descending
from sully.machinery.fields import Path

Obj = dict[str, Any]

_MAX_ID = 2**31 - 1
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_LONGEST_SYSCTL = 253
_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_FORMAT = rf"({_PART}[\./])*{_PART}"
_SYSCTL = re.compile(_SYSCTL_FORMAT)
_NO_SYSCTL = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL_FORMAT}$"
_ESCALATION = "cannot set `allowPrivilegeEscalation` to false and "
_BOTH_NAMESPACES = "ShareProcessNamespace and HostPID cannot both be enabled"
# The Go names of the fields, in the order of error texts.
_GO_FIELDS = (
    *("Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup"),
    *("RunAsNonRoot", "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount"),
    *("SeccompProfile", "AppArmorProfile"),
)


def container_security(context: Obj | None, at: Path, *, host_users: bool) -> Errors:
    """Check identity and rights of a container."""
    if context is None:
        return
    yield from _identities(context, at)
    if "procMount" in context:
        yield from one_of(context["procMount"], ("Default", "Unmasked"), at.child("procMount"))
        if host_users and context["procMount"] == "Unmasked":
            text = "`hostUsers` must be false to use `Unmasked`"
            yield at.child("procMount").invalid("Unmasked", text)
    yield from _seccomp(context.get("seccompProfile"), at.child("seccompProfile"))
    yield from _escalation(context, at)
    yield from windows.options(context.get("windowsOptions"), at.child("windowsOptions"))
    yield from _app_armor(context.get("appArmorProfile"), at.child("appArmorProfile"))


def pod_security(spec: Obj, at: Path) -> Errors:
    """Check identity and rights that all containers of a pod share."""
    context, parent = spec.get("securityContext") or {}, at
    at = at.child("securityContext")
    yield from _identities(context, at)
    yield from _sysctls(context.get("sysctls") or [], at.child("sysctls"))
    yield from _choice(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), at)
    yield from _seccomp(context.get("seccompProfile"), at.child("seccompProfile"))
    yield from windows.options(context.get("windowsOptions"), at.child("windowsOptions"))
    yield from _app_armor(context.get("appArmorProfile"), at.child("appArmorProfile"))
    yield from _choice(context, "supplementalGroupsPolicy", ("Merge", "Strict"), at)
    yield from _choice(context, "seLinuxChangePolicy", ("MountOption", "Recursive"), at)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield parent.child("shareProcessNamespace").invalid(True, _BOTH_NAMESPACES)


def _choice(context: Obj, name: str, allowed: tuple[str, ...], at: Path) -> Errors:
    if name in context:
        yield from one_of(context[name], allowed, at.child(name))


def _identities(context: Obj, at: Path) -> Errors:
    """Check ids of users and groups."""
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if name in context:
            yield from between(context[name], 0, _MAX_ID, at.child(name))
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        yield from between(group, 0, _MAX_ID, at.child("supplementalGroups").index(position))


def _escalation(context: Obj, at: Path) -> Errors:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    shown = _shown(context)
    if context.get("privileged"):
        yield at.invalid(shown, _ESCALATION + "`privileged` to true")
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            yield at.invalid(shown, _ESCALATION + "`capabilities.Add` CAP_SYS_ADMIN")


def _shown(context: Obj) -> Obj:
    """Return a context as Go's fields have it."""
    fields = as_go({**context, "sELinuxOptions": context.get("seLinuxOptions")}, *_GO_FIELDS)
    if fields["Capabilities"] is not None:
        fields["Capabilities"] = as_go(fields["Capabilities"], "Add", "Drop")
    return fields


def _seccomp(profile: Obj | None, at: Path) -> Errors:
    if profile is None:
        return
    kind, path = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield at.child("type").required("type is required when seccompProfile is set")
    else:
        yield from one_of(kind, _PROFILES, at.child("type"))
    at = at.child("localhostProfile")
    if kind == "Localhost":
        if path is None:
            yield at.required("must be set when seccomp type is Localhost")
        else:
            yield from descending(path, at)
    elif path is not None:
        shown = as_go(profile, "Type", "LocalhostProfile")
        yield at.invalid(shown, "can only be set when seccomp type is Localhost")


def _app_armor(profile: Obj | None, at: Path) -> Errors:
    if profile is None:
        return
    kind, name = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield at.child("type").required("type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield from one_of(kind, _PROFILES, at.child("type"))
    elif kind == "Localhost":
        yield from _app_armor_name(name, at.child("localhostProfile"))
    elif name is not None:
        text = "can only be set when AppArmor type is Localhost"
        yield at.child("localhostProfile").invalid(name, text)


def _app_armor_name(name: str | None, at: Path) -> Errors:
    if not name:
        yield at.required("must be set when AppArmor type is Localhost")
    elif name != name.strip():
        yield at.invalid(name, "must not be padded with whitespace")
    elif len(name) > _LONGEST_PROFILE:
        yield at.too_long(_LONGEST_PROFILE)


def _sysctls(values: list[Obj], at: Path) -> Errors:
    names: set[str] = set()
    for position, value in enumerate(values):
        name, here = value.get("name", ""), at.index(position).child("name")
        if not name:
            yield here.required()
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield here.invalid(name, _NO_SYSCTL)
        elif name in names:
            yield here.duplicate(name)
        names.add(name)
