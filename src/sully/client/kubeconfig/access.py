"""The address, CA and credentials of one API server: what the HTTP transport needs.

`kubeconfig.py` and `in_cluster` make an `Access`; `credentials.py` and `exec_plugin.py` have the
credentials.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from sully.client.kubeconfig.credentials import (
    NO_CREDENTIAL,
    AccessError,
    Credential,
    Credentials,
    FileCredentials,
    FixedCredentials,
)
from sully.runtime.clock import Clock, SystemClock

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The connection parameters of one user of one API server."""

    server: str
    namespace: str = "default"
    ca: bytes = field(default=b"", repr=False)
    """PEM; empty for the CAs that the system trusts."""
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    credentials: Credentials = field(default=FixedCredentials(NO_CREDENTIAL), repr=False)
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Sent with every request: impersonation."""
    compression: bool = True
    origin: str = ""
    """Where the credentials are configured, for messages."""


def in_cluster(
    env: Mapping[str, str], *, clock: Clock | None = None, folder: Path = SERVICE_ACCOUNT
) -> Access | None:
    """Return the access that a pod's service account has, or None outside a pod."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (folder / "token").is_file():
        return None
    namespace = folder / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=_authority(folder / "ca.crt"),
        # The kubelet replaces the token about once an hour.
        credentials=FileCredentials(token_file=folder / "token", clock=clock or SystemClock()),
        origin="the service account of this pod",
    )


def _authority(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AccessError(f"{path}: cannot read the cluster's authority: {error}") from error


def tls_context(access: Access, credential: Credential) -> ssl.SSLContext:
    """Return the TLS context with the CA and the client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.ca:
        try:
            context.load_verify_locations(cadata=access.ca.decode())
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(
                f"the certificate authority for {access.server} is not a PEM certificate: {error}"
            ) from error
    else:
        context.load_default_certs()
    if credential.certificate:
        _show(context, credential)
    return context


def _show(context: ssl.SSLContext, credential: Credential) -> None:
    # The ssl module reads a certificate only from files. The folder is private to this user.
    with TemporaryDirectory(prefix="sully-") as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(credential.certificate)
        key.touch(mode=0o600)
        key.write_bytes(credential.key)
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            raise AccessError(
                f"the client certificate and its key do not work together: {error}"
            ) from error
