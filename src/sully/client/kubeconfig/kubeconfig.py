"""Kubeconfig: server, user and namespace.

The merge rules are kubectl's: of several files in KUBECONFIG the first to name a cluster, user,
context or the current context wins, and relative paths are relative to the file that has them.
writing.py writes one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from sully.client.http.proxies import is_address, supported_proxy
from sully.client.kubeconfig.access import Access, in_cluster
from sully.client.kubeconfig.credentials import (
    AccessError,
    Credential,
    Credentials,
    FileCredentials,
    FixedCredentials,
    decode_data,
)
from sully.client.kubeconfig.exec_plugin import ExecCredentials, cluster_info, parse_plugin
from sully.client.kubeconfig.shape import structure_problem
from sully.runtime.clock import Clock, SystemClock

_HEADER_SAFE = "!#$&'*+.^_`|~-"


class KubeconfigEntry(msgspec.Struct, frozen=True):
    """A cluster, user or context, and the file that has it."""

    value: Mapping[str, Any]
    file: Path

    def path(self, name: str) -> Path | None:
        """Return a path in the entry, relative to its file."""
        text = self.value.get(name)
        return self.resolve(str(text)) if text else None

    def resolve(self, text: str) -> Path:
        """Return an absolute path, relative to the file.

        Absolute also for a file that was named without a directory: a relative command without a
        slash would be looked up in PATH.
        """
        return Path(os.path.abspath(self.file.parent / Path(text).expanduser()))


class Kubeconfig(msgspec.Struct, frozen=True):
    """The merged files."""

    files: tuple[Path, ...]
    current_context: str = ""
    clusters: Mapping[str, KubeconfigEntry] = msgspec.field(default_factory=dict)
    users: Mapping[str, KubeconfigEntry] = msgspec.field(default_factory=dict)
    contexts: Mapping[str, KubeconfigEntry] = msgspec.field(default_factory=dict)

    def access(self, context: str = "", *, clock: Clock | None = None) -> Access:
        """Return the access of a context, by default the current one."""
        name = context or self.current_context
        where = ", ".join(str(file) for file in self.files)
        if not name:
            raise AccessError(
                f"{where}: there is no current-context; choose one of"
                f" {_names(self.contexts)} with --context"
            )
        chosen = _pick(self.contexts, "context", name, where)
        origin = f"context {name!r} in {chosen.file}"
        cluster = _pick(self.clusters, "cluster", chosen.value.get("cluster"), origin)
        user = chosen.value.get("user")
        access = _access(
            cluster,
            _pick(self.users, "user", user, origin) if user else KubeconfigEntry({}, chosen.file),
            namespace=str(chosen.value.get("namespace") or "default"),
            names=(str(chosen.value.get("cluster")), str(user or "")),
            clock=clock or SystemClock(),
        )
        return replace(access, origin=f'context "{name}" in {chosen.file}')


class Impersonation(msgspec.Struct, frozen=True):
    """The user that the flags of a command impersonate."""

    user: str = ""
    groups: tuple[str, ...] = ()

    def headers(self) -> dict[str, str | tuple[str, ...]]:
        """Return the Impersonate headers."""
        if not self.user:
            raise AccessError("--as-group requires --as")
        return _impersonation({"as": self.user, "as-groups": self.groups})


def find_access(
    kubeconfig: str = "",
    context: str = "",
    *,
    impersonate: Impersonation | None = None,
    env: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> Access:
    """Find the server to talk to, as kubectl does.

    A file that is named comes first, then KUBECONFIG, then ~/.kube/config, then the service
    account of the pod. Impersonation by flags comes before that of the file.
    """
    access = _find_access(kubeconfig, context, env, clock)
    if impersonate is None or not (impersonate.user or impersonate.groups):
        return access
    return replace(access, headers=impersonate.headers())


class NotConfiguredError(AccessError):
    """No server is configured."""


def _find_access(
    kubeconfig: str, context: str, env: Mapping[str, str], clock: Clock | None
) -> Access:
    files = [Path(kubeconfig)] if kubeconfig else usual_files(env)
    config = load_kubeconfig(files, required=bool(kubeconfig))
    if config.contexts or config.clusters:
        return config.access(context, clock=clock)
    inside = in_cluster(env, clock=clock)
    if inside is not None and not context:
        return inside
    looked = ", ".join(str(file) for file in files) or "nowhere"
    raise NotConfiguredError(
        f"no cluster is configured (looked in {looked}): pass --kubeconfig, set KUBECONFIG,"
        " or start one with `sully up`"
    )


def usual_files(env: Mapping[str, str]) -> list[Path]:
    """Return the files that are read where none is named."""
    listed = [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    return listed or [home / ".kube" / "config"]


def load_kubeconfig(files: Sequence[Path], *, required: bool = False) -> Kubeconfig:
    """Read and merge files; those that do not exist are left out unless they are required."""
    current = ""
    merged: dict[str, dict[str, KubeconfigEntry]] = {"clusters": {}, "users": {}, "contexts": {}}
    for file in files:
        content = _read(file, required=required)
        current = current or str(content.get("current-context") or "")
        for section, entries in merged.items():
            for name, value in _named(content, section, file):
                entries.setdefault(name, KubeconfigEntry(value, file))
    return Kubeconfig(tuple(files), current, **merged)


def _problem(error: Exception) -> str:
    """Return a problem of YAML on one line, as kubectl does."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"line {mark.line + 1}: {problem}" if mark is not None and problem else str(error)


def _read(file: Path, *, required: bool) -> Mapping[str, Any]:
    import yaml  # late: most of the program never reads a kubeconfig

    try:
        text = file.read_bytes()
    except FileNotFoundError as error:
        if not required:
            return {}
        raise AccessError(f"{file}: no such file or directory") from error
    except OSError as error:
        raise AccessError(f"{file}: cannot read the kubeconfig: {error.strerror}") from error
    try:
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise AccessError(f"{file}: invalid YAML: {_problem(error)}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise AccessError(f"{file}: a kubeconfig is a mapping with clusters, users and contexts")
    problem = structure_problem(content)
    if problem:
        raise AccessError(f"{file}: the kubeconfig has another shape than it should: {problem}")
    return content


def _named(
    content: Mapping[str, Any], section: str, file: Path
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    singular = section.removesuffix("s")
    entries = []
    for item in content.get(section) or ():
        if not isinstance(item, dict) or not item.get("name"):
            raise AccessError(f"{file}: every item of {section} needs a name")
        entries.append((str(item["name"]), item.get(singular) or {}))
    return entries


def _pick(
    entries: Mapping[str, KubeconfigEntry], what: str, name: Any, where: str
) -> KubeconfigEntry:
    if not name:
        raise AccessError(f"{where}: no {what} is named")
    entry = entries.get(str(name))
    if entry is None:
        raise AccessError(f'{where}: {what} "{name}" not found (there are: {_names(entries)})')
    return entry


def _names(entries: Mapping[str, KubeconfigEntry]) -> str:
    return ", ".join(sorted(entries)) or "none"


def _access(
    cluster: KubeconfigEntry,
    user: KubeconfigEntry,
    *,
    namespace: str,
    names: tuple[str, str],
    clock: Clock,
) -> Access:
    server = str(cluster.value.get("server") or "").rstrip("/")
    if not is_address(server):
        raise AccessError(
            f"{cluster.file}: cluster {names[0]!r} needs a server such as https://127.0.0.1:6443"
        )
    ca = _data(cluster, "certificate-authority", f"cluster {names[0]!r}")
    insecure = bool(cluster.value.get("insecure-skip-tls-verify"))
    if ca and insecure:
        raise AccessError(
            f"{cluster.file}: cluster {names[0]!r} has a certificate-authority and"
            " insecure-skip-tls-verify; remove one"
        )
    return Access(
        server=server,
        namespace=namespace,
        ca=ca,
        insecure=insecure,
        tls_server_name=str(cluster.value.get("tls-server-name") or ""),
        proxy_url=_proxy(cluster, names[0]),
        credentials=_credentials(user, names[1], cluster_info(cluster.value, ca), clock),
        headers=_impersonation(user.value),
        compression=not cluster.value.get("disable-compression"),
    )


def _proxy(cluster: KubeconfigEntry, name: str) -> str:
    url = str(cluster.value.get("proxy-url") or "")
    return supported_proxy(url, f"{cluster.file}: cluster {name!r}: proxy-url") if url else ""


def _data(entry: KubeconfigEntry, name: str, what: str) -> bytes:
    """Return inline data, which wins, or what the named file holds."""
    inline = entry.value.get(f"{name}-data")
    if inline:
        return decode_data(inline, f"{entry.file}: {what}: {name}-data")
    path = entry.path(name)
    if path is None:
        return b""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise AccessError(f"{entry.file}: {what}: cannot read {name} {path}: {why}") from error


def _credentials(
    user: KubeconfigEntry, name: str, info: Mapping[str, Any], clock: Clock
) -> Credentials:
    origin = f"{user.file}: user {name!r}"
    value = user.value
    if value.get("auth-provider"):
        raise AccessError(f"{origin}: auth-provider is not supported; use an exec plugin instead")
    block = value.get("exec")
    if block:
        command = _command(user, str(block.get("command") or ""), origin)
        plugin = parse_plugin(block, command=command, origin=origin, cluster=info)
        return ExecCredentials(plugin, clock=clock)
    _check_pair(value, origin)
    fixed = Credential(
        token=str(value.get("token") or ""),
        username=str(value.get("username") or ""),
        password=str(value.get("password") or ""),
        certificate=_inline(user, "client-certificate", origin),
        key=_inline(user, "client-key", origin),
    )
    files = {
        "certificate_file": None if fixed.certificate else user.path("client-certificate"),
        "key_file": None if fixed.key else user.path("client-key"),
        # kubectl prefers the file, which is renewed, to a token beside it.
        "token_file": user.path("tokenFile"),
    }
    if any(files.values()):
        return FileCredentials(fixed, **files, clock=clock)
    return FixedCredentials(fixed)


def _check_pair(value: Mapping[str, Any], origin: str) -> None:
    has = {
        name: bool(value.get(name) or value.get(f"{name}-data"))
        for name in ("client-certificate", "client-key")
    }
    missing = [name for name, present in has.items() if not present]
    if len(missing) == 1:
        raise AccessError(f"{origin}: {missing[0]} (or {missing[0]}-data) is missing")


def _inline(user: KubeconfigEntry, name: str, origin: str) -> bytes:
    text = user.value.get(f"{name}-data")
    return decode_data(text, f"{origin}: {name}-data") if text else b""


def _command(user: KubeconfigEntry, command: str, origin: str) -> str:
    if not command:
        raise AccessError(f"{origin}: exec.command is missing")
    # A bare name is looked up in PATH; anything else is relative to the kubeconfig.
    return str(user.resolve(command)) if os.sep in command else command


def _impersonation(user: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    headers: dict[str, str | tuple[str, ...]] = {}
    if user.get("as"):
        headers["Impersonate-User"] = str(user["as"])
    if user.get("as-uid"):
        headers["Impersonate-Uid"] = str(user["as-uid"])
    if user.get("as-groups"):
        headers["Impersonate-Group"] = tuple(str(group) for group in user["as-groups"])
    for key, values in (user.get("as-user-extra") or {}).items():
        headers[f"Impersonate-Extra-{quote(str(key), safe=_HEADER_SAFE)}"] = tuple(
            str(value) for value in values
        )
    return headers
