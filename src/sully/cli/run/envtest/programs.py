"""The programs that envtest of controller-runtime starts: `kube-apiserver` and `etcd`.

`kube-apiserver` is a control plane in memory; it gets the certificates of envtest. `etcd` only
answers that it is healthy: there is no second process with the data. As in envtest, no controller
runs, except the one that creates service accounts.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

PROGRAMS = ("etcd", "kube-apiserver")
CONTROLLERS = frozenset(("serviceaccounts",))
ETCD_FLAGS = frozenset(
    (
        "advertise-client-urls",
        "data-dir",
        "listen-client-urls",
        "listen-peer-urls",
        "unsafe-no-fsync",
    )
)
USED = frozenset(
    (
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "feature-gates",
        "runtime-config",
        "secure-port",
        "tls-cert-file",
        "tls-private-key-file",
    )
)
WITHOUT_EFFECT = frozenset(
    (
        "advertise-address",
        "allow-privileged",
        "api-audiences",
        "authorization-mode",
        "disable-admission-plugins",
        "enable-admission-plugins",
        "etcd-prefix",
        "etcd-servers",
        "external-hostname",
        "service-account-issuer",
        "service-account-key-file",
        "service-account-lookup",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
        "v",
        "watch-cache",
    )
)
"""Flags of kube-apiserver that are accepted: Sully always authorizes by RBAC, and signs the tokens
of service accounts with a key of its own."""


class FlagError(ValueError):
    """A flag that cannot be honored."""


def parse_flags(arguments: Sequence[str]) -> dict[str, str]:
    """Return flags written `--name=value`, as envtest writes them, or `--name value`."""
    flags: dict[str, str] = {}
    left = list(arguments)
    while left:
        argument = left.pop(0)
        if not argument.startswith("--"):
            raise FlagError(f'unexpected argument "{argument}"')
        name, equals, value = argument[2:].partition("=")
        if not equals and left and not left[0].startswith("--"):
            value = left.pop(0)
        flags[name] = value if equals or value else "true"
    return flags


def help_text(program: str) -> str:
    """Return the flags of a program, one on each line: envtest looks there for what it may pass."""
    flags = ETCD_FLAGS if program == "etcd" else USED | WITHOUT_EFFECT
    return "\n".join([f"Usage: {program} [flags]", *(f"  --{name}" for name in sorted(flags))])


def serving_pair(flags: dict[str, str]) -> tuple[Path, Path] | None:
    """Return the certificate and key to serve with; None if there is none to be used."""
    if "tls-cert-file" in flags and "tls-private-key-file" in flags:
        return Path(flags["tls-cert-file"]), Path(flags["tls-private-key-file"])
    folder = Path(flags["cert-dir"]) if "cert-dir" in flags else None
    if folder is None or not (folder / "apiserver.crt").exists():
        return None
    return folder / "apiserver.crt", folder / "apiserver.key"


async def serve_api(flags: dict[str, str]) -> None:
    """Run a control plane in memory until a signal stops it."""
    from sully.app import Config, running
    from sully.machinery.gates import parse_gates
    from sully.machinery.runtimeconfig import parse_runtime_config

    unknown = sorted(flags.keys() - USED - WITHOUT_EFFECT)
    if unknown:
        raise FlagError(f"unknown flag --{unknown[0]}: Sully's kube-apiserver does not have it")
    client_ca = flags.get("client-ca-file")
    with tempfile.TemporaryDirectory(prefix="sully-envtest-") as folder:
        config = Config(
            data_dir=Path(folder),
            host=flags.get("bind-address", "127.0.0.1"),
            port=int(flags.get("secure-port", "6443")),
            store="memory",
            gates=parse_gates(flags.get("feature-gates", "")),
            runtime=parse_runtime_config(flags.get("runtime-config", "")),
            serving_certificate=serving_pair(flags),
            client_ca=Path(client_ca) if client_ca else None,
            audit_log="",
            controllers=CONTROLLERS,
        )
        async with running(config):
            await _stopped()


async def serve_etcd(flags: dict[str, str]) -> None:
    """Answer the health checks of an etcd until a signal stops it."""
    from aiohttp import web

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"health": "true", "reason": ""})

    address = urlsplit(flags.get("listen-client-urls", "http://127.0.0.1:2379").split(",")[0])
    app = web.Application()
    app.router.add_get("/health", health)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.hostname or "127.0.0.1", address.port or 2379).start()
        await _stopped()
    finally:
        await runner.cleanup()


async def _stopped() -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()


def main(arguments: Sequence[str]) -> int:
    """Run one of the programs; the first argument is its name."""
    program, *rest = arguments
    try:
        flags = parse_flags(rest)
        if "help" in flags:
            print(help_text(program))
            return 0
        asyncio.run(serve_etcd(flags) if program == "etcd" else serve_api(flags))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
