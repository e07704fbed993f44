"""Writes the kubeconfig of the embedded server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sully.machinery.serialization.codec import to_yaml
from sully.runtime.files import write_private


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One user of one server. `ca`, `certificate` and `key` are PEM."""

    server: str
    ca: bytes = b""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    cluster: str = "sully"
    user: str = "admin"
    namespace: str = "default"


def kubeconfig(login: Login) -> dict[str, Any]:
    """Build a kubeconfig with one context, `<user>@<cluster>`."""
    context = f"{login.user}@{login.cluster}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": login.cluster,
                "cluster": {"server": login.server, **_encoded(certificate_authority=login.ca)},
            }
        ],
        "users": [{"name": login.user, "user": _user(login)}],
        "contexts": [
            {
                "name": context,
                "context": {
                    "cluster": login.cluster,
                    "user": login.user,
                    "namespace": login.namespace,
                },
            }
        ],
        "current-context": context,
    }


def _user(login: Login) -> dict[str, str]:
    user = _encoded(client_certificate=login.certificate, client_key=login.key)
    return user | ({"token": login.token} if login.token else {})


def _encoded(**data: bytes) -> dict[str, str]:
    return {
        f"{name.replace('_', '-')}-data": b64encode(value).decode()
        for name, value in data.items()
        if value
    }


def write_kubeconfig(path: Path, content: Mapping[str, Any]) -> None:
    """Write a kubeconfig that only its owner can read, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, to_yaml(dict(content)))
