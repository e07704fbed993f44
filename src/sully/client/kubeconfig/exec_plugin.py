"""Exec credential plugins of kubeconfig.

A plugin gets an ExecCredential in the variable KUBERNETES_EXEC_INFO and prints one that carries a
token or a client certificate. It is run when the first request needs it, when what it gave has
expired, and when the server rejects it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from sully.client.kubeconfig.credentials import AccessError, Credential
from sully.machinery.formats.timestamps import TimeError, parse_time
from sully.runtime.clock import Clock

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A program and how it wants to be called."""

    command: str
    api_version: str
    origin: str
    """The kubeconfig and user that name it, for messages."""
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    install_hint: str = ""
    interactive: str = "IfAvailable"
    cluster: Mapping[str, Any] | None = None
    """The cluster info for the plugin, if it wants it."""


class ExecCredentials:
    """Credentials from a plugin, cached until they expire or are rejected."""

    def __init__(self, plugin: ExecPlugin, *, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._lock = asyncio.Lock()
        self._held: Credential | None = None
        self._expires: datetime | None = None

    async def current(self) -> Credential:
        """Return what the plugin gave, running it if need be; never twice at a time."""
        async with self._lock:
            if self._held is None or self._expired():
                output = await run_plugin(self._plugin)
                self._held, self._expires = read_credential(self._plugin, output)
            return self._held

    def reject(self, credential: Credential) -> bool:
        """Forget a rejected credential, so that the plugin is run again."""
        if self._held == credential:
            self._held = None
        return True

    def _expired(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires


async def run_plugin(plugin: ExecPlugin) -> bytes:
    """Run a plugin and return what it printed."""
    interactive = _may_ask(plugin)
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    request = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            # The plugin may prompt for a password.
            stderr=None if interactive else PIPE,
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(request)},
        )
    except OSError as error:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise AccessError(
            f"{plugin.origin}: cannot run {plugin.command}: {error.strerror}{hint}"
        ) from error
    return await _output(plugin, process)


def _may_ask(plugin: ExecPlugin) -> bool:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not terminal:
        raise AccessError(
            f"{plugin.origin}: {plugin.command} must ask a person, and there is no terminal"
        )
    return terminal and plugin.interactive != "Never"


async def _output(plugin: ExecPlugin, process: Process) -> bytes:
    try:
        output, complaint = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        message = (complaint or b"").decode(errors="replace").strip()[-500:]
        raise AccessError(
            f"{plugin.origin}: {plugin.command} failed with exit code {process.returncode}"
            + (f": {message}" if message else "")
        )
    return output


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _Printed(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


def read_credential(plugin: ExecPlugin, output: bytes) -> tuple[Credential, datetime | None]:
    """Read what a plugin printed: the credential, and when it expires if it does."""
    try:
        printed = msgspec.json.decode(output, type=_Printed)
    except (ValueError, RecursionError) as error:
        raise _complain(plugin, "printed no ExecCredential") from error
    if printed.kind != "ExecCredential" or printed.api_version != plugin.api_version:
        raise _complain(plugin, f"printed no ExecCredential of {plugin.api_version}")
    status = printed.status or _Status()
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise _complain(plugin, "gave only one of clientCertificateData and clientKeyData")
    token = status.token or ""
    if not token and not certificate:
        raise _complain(plugin, "gave neither a token nor a client certificate")
    credential = Credential(
        token=token, certificate=(certificate or "").encode(), key=(key or "").encode()
    )
    return credential, _expiry(plugin, status.expiration_timestamp)


def _expiry(plugin: ExecPlugin, text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except TimeError as error:
        raise _complain(plugin, f"gave a bad expirationTimestamp: {error}") from error


def _complain(plugin: ExecPlugin, what: str) -> AccessError:
    return AccessError(f"{plugin.origin}: {plugin.command} {what}")


def parse_plugin(
    block: Mapping[str, Any], *, command: str, origin: str, cluster: Mapping[str, Any]
) -> ExecPlugin:
    """Read the `exec` block of a kubeconfig user."""
    version = str(block.get("apiVersion") or "")
    if version not in VERSIONS:
        raise AccessError(
            f"{origin}: exec.apiVersion is {version!r}; use one of {', '.join(VERSIONS)}"
        )
    mode = block.get("interactiveMode") or ("" if version == VERSIONS[0] else "IfAvailable")
    if mode not in ("Never", "IfAvailable", "Always"):
        raise AccessError(
            f"{origin}: exec.interactiveMode is {mode!r}; use Never, IfAvailable or Always"
        )
    return ExecPlugin(
        command=command,
        api_version=version,
        origin=origin,
        arguments=tuple(str(argument) for argument in block.get("args") or ()),
        env={str(item["name"]): str(item["value"]) for item in block.get("env") or ()},
        install_hint=str(block.get("installHint") or ""),
        interactive=mode,
        cluster=cluster if block.get("provideClusterInfo") else None,
    )


def cluster_info(cluster: Mapping[str, Any], ca: bytes) -> dict[str, Any]:
    """Return the cluster info for a plugin, from the cluster in the kubeconfig."""
    info: dict[str, Any] = {"server": cluster.get("server", ""), "config": None}
    if ca:
        info["certificate-authority-data"] = b64encode(ca).decode()
    for name in ("tls-server-name", "insecure-skip-tls-verify", "proxy-url"):
        if cluster.get(name):
            info[name] = cluster[name]
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == f"{GROUP}/exec":
            info["config"] = extension.get("extension")
    return info
