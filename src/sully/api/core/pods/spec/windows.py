"""What pods may set for one operating system: options of Windows, and what Windows has not."""

import re
from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import Errors, dns_subdomain
from sully.machinery.fields import Path

Obj = dict[str, Any]

_SPEC_MAX_KIB = 64
_DOMAIN_MAX = 256
_USER_MAX = 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS = re.compile(r"[^\\/:*?\"<>|.][^\\/:*?\"<>|]{0,14}")
_DNS_PART = r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DNS_DOMAIN = re.compile(rf"{_DNS_PART}(\.{_DNS_PART})*")
_DOTS_AND_SPACES = re.compile(r"[. ]+")
_NOT_IN_USERS = re.compile(r"[\"/\\:;|=,+*?<>@\[\]]")
_ALL_OR_NONE = (
    "If pod contains any hostProcess containers then all containers must be HostProcess containers"
)
_HOST_NETWORK = "hostNetwork must be true if pod contains any hostProcess containers"
_DISALLOWED = "hostProcess containers are disallowed by cluster policy"
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_NOT_ON_LINUX = "windows options cannot be set for a linux pod"
_POD_CONTEXT = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy"),
    *("sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy"),
    "seLinuxChangePolicy",
)
_CONTAINER_CONTEXT = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities"),
    *("readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"),
    *("runAsUser", "runAsGroup"),
)


def options(value: Obj | None, at: Path) -> Errors:
    """Check the options of Windows in a security context."""
    if value is None:
        return
    if "gmsaCredentialSpecName" in value:
        here = at.child("gmsaCredentialSpecName")
        yield from dns_subdomain(value["gmsaCredentialSpecName"], here)
    if "gmsaCredentialSpec" in value:
        text, here = value["gmsaCredentialSpec"], at.child("gmsaCredentialSpec")
        if not text:
            yield here.invalid(text, "gmsaCredentialSpec cannot be an empty string")
        elif len(text.encode()) > _SPEC_MAX_KIB * 1024:
            yield here.invalid(text, f"gmsaCredentialSpec size must be under {_SPEC_MAX_KIB} KiB")
    if "runAsUserName" in value:
        name = value["runAsUserName"]
        for problem in _user_problems(name):
            yield at.child("runAsUserName").invalid(name, problem)


def _user_problems(name: str) -> Iterator[str]:
    domain, backslash, user = name.rpartition("\\")
    if not name:
        yield "runAsUserName cannot be an empty string"
    elif _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
    elif "\\" in domain:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        if backslash:
            yield from _domain_problems(domain)
        yield from _account_problems(user)


def _domain_problems(domain: str) -> Iterator[str]:
    if len(domain.encode()) >= _DOMAIN_MAX:
        yield f"runAsUserName's Domain length must be under {_DOMAIN_MAX} characters"
    if not _NET_BIOS.fullmatch(domain) and not _DNS_DOMAIN.fullmatch(domain):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"


def _account_problems(user: str) -> Iterator[str]:
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user.encode()) > _USER_MAX:
        yield f"runAsUserName's User length must not be longer than {_USER_MAX} characters"
    if _DOTS_AND_SPACES.fullmatch(user):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if _NOT_IN_USERS.search(user):
        yield ("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")


def host_process(spec: Obj, at: Path, *, privileged: bool) -> Errors:
    """Check that containers with all rights on a Windows node are the only ones in their pod."""
    of_pod = _context(spec).get("windowsOptions", {}).get("hostProcess")
    flags = []
    for container, here in containers_of(spec, at):
        flag = _context(container).get("windowsOptions", {}).get("hostProcess")
        if flag is not None and of_pod is not None and flag != of_pod:
            text = (
                "pod hostProcess value must be identical if both are specified, was"
                f" {str(of_pod).lower()}"
            )
            yield here.child("securityContext", "windowsOptions", "hostProcess").invalid(flag, text)
        flags.append(of_pod if flag is None else flag)
    if not any(flags):
        return
    if not all(flags):
        yield at.invalid("", _ALL_OR_NONE)
    if not spec.get("hostNetwork"):
        yield at.child("hostNetwork").invalid(False, _HOST_NETWORK)
    if not privileged:
        yield at.forbidden(_DISALLOWED)


def containers_of(spec: Obj, at: Path) -> Iterator[tuple[Obj, Path]]:
    """Yield all containers of a pod, each with its place."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(name) or ()):
            yield container, at.child(name).index(position)


def only_of_linux(spec: Obj, at: Path) -> Errors:
    """Check that a pod for Linux has no options of Windows."""
    for holder, here in [(spec, at), *containers_of(spec, at)]:
        if "windowsOptions" in _context(holder):
            yield here.child("securityContext", "windowsOptions").forbidden(_NOT_ON_LINUX)


def only_of_windows(spec: Obj, at: Path) -> Errors:
    """Check that a pod for Windows sets nothing that only Linux has."""
    yield from _absent(_context(spec), _POD_CONTEXT, at.child("securityContext"))
    for name in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        # Of the flags that are not pointers, false is the same as none.
        if spec.get(name) or (name in spec and name in ("hostUsers", "shareProcessNamespace")):
            yield at.child(name).forbidden(_NOT_ON_WINDOWS)
    for container, here in containers_of(spec, at):
        yield from _absent(_context(container), _CONTAINER_CONTEXT, here.child("securityContext"))


def _absent(context: Obj, names: tuple[str, ...], at: Path) -> Errors:
    for name in names:
        if name in context:
            yield at.child(name).forbidden(_NOT_ON_WINDOWS)


def _context(holder: Obj) -> Obj:
    return holder.get("securityContext") or {}
