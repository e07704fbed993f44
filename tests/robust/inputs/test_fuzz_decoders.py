"""Kubeconfigs, command lines and protobuf bodies that nobody would write: each is read or refused.

Others are beside this one (bodies, patches, selectors, expressions), in tests/store (backups) and
in tests/cli (snapshots and manifests).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.commandlines import parsed
from robust.inputs.changing import EXAMPLES, SETTINGS, changed, damaged, odd
from robust.inputs.test_fuzz import CORE, GOOD, check, encoded
from serving import Asgi, local
from sully.cli.main import COMMANDS, load
from sully.client.kubeconfig.access import Access, tls_context
from sully.client.kubeconfig.credentials import NO_CREDENTIAL, AccessError
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.server.negotiation import PROTOBUF

FEW = settings(SETTINGS, max_examples=max(10, EXAMPLES // 6))
"""For what there are many of."""

# -- kubeconfigs ----------------------------------------------------------------------------------

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {
            "name": "c",
            "cluster": {
                "server": "https://c:6443",
                "certificate-authority-data": "LS0tLS1CRUdJTg==",
                "insecure-skip-tls-verify": False,
                "tls-server-name": "c",
                "proxy-url": "http://proxy:3128",
            },
        }
    ],
    "users": [
        {"name": "u", "user": {"client-certificate-data": "YQ==", "client-key-data": "YQ=="}},
        {"name": "t", "user": {"token": "t", "tokenFile": "token", "as": "a", "as-groups": ["g"]}},
        {"name": "p", "user": {"username": "a", "password": "b"}},
        {
            "name": "e",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "none",
                    "args": ["a"],
                    "env": [{"name": "A", "value": "b"}],
                    "interactiveMode": "Never",
                }
            },
        },
    ],
    "contexts": [
        {"name": name, "context": {"cluster": "c", "user": name, "namespace": "n"}}
        for name in ("u", "t", "p", "e")
    ],
    "current-context": "u",
}


def accesses(content: bytes) -> Iterator[Access]:
    """Yield what each context gives; raise only the error for users."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config"
        file.write_bytes(content)
        try:
            config = load_kubeconfig([file], required=True)
        except AccessError:
            return
        for context in ("", "u", "t", "p", "e"):
            try:
                yield config.access(context)
            except AccessError:
                continue


def test_the_good_kubeconfig_is_good() -> None:
    assert len(list(accesses(yaml.safe_dump(CONFIG).encode()))) == 5


@pytest.mark.slow
def test_kubeconfigs() -> None:
    good = yaml.safe_dump(CONFIG).encode()
    texts = changed(CONFIG).map(encoded) | damaged(good) | st.binary(max_size=40)

    @SETTINGS
    @given(texts)
    @example(b"clusters: &a [*a]")
    @example(b"- 1")
    def attempt(content: bytes) -> None:
        for access in accesses(content):
            try:
                tls_context(access, NO_CREDENTIAL)
            except AccessError:
                continue

    attempt()


# -- command lines --------------------------------------------------------------------------------


def flags(name: str) -> list[str]:
    """Return the flags of a command."""
    params = load(name).params
    return [flag for param in params if isinstance(param, click.Option) for flag in param.opts]


def as_argument(word: str) -> str:
    """Return a word as Python gets it from the system: any bytes, but for zero."""
    return os.fsdecode(word.replace("\0", "").encode("utf-8", "surrogatepass"))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_command_lines(name: str) -> None:
    values = st.sampled_from(["1", "15s", "json", "a=b:NoExecute", "*/*/*", "-", "--", "5%"]) | odd
    known = st.sampled_from([*flags(name), "--help", "--unknown"])
    joined = st.tuples(known, values).map("=".join)

    @FEW
    @given(st.lists(known | joined | values, max_size=6))
    @example(["\ud800"])
    @example(["--kubeconfig", "\ud800"])
    def attempt(words: list[str]) -> None:
        words = [as_argument(word) for word in words]
        with redirect_stdout(StringIO()):
            try:
                parsed(name, *words)
            except (click.UsageError, click.exceptions.Exit):
                return

    attempt()


# -- protobuf -------------------------------------------------------------------------------------


async def protobuf_of(server: Asgi, path: str) -> bytes:
    (await server.post(path, GOOD[path])).ok(201)
    return (await server.get(f"{path}/m", PROTOBUF)).body


@pytest.mark.slow
@pytest.mark.parametrize("path", GOOD)
def test_protobuf_bodies(path: str) -> None:
    async def work(bodies: list[bytes] | None) -> bytes:
        async with local() as server:
            account = {"metadata": {"name": "default"}}
            (await server.post(f"{CORE}/serviceaccounts", account)).ok(201)
            good = await protobuf_of(server, path)
            for body in bodies or ():
                check(await server.put(f"{path}/m", body, PROTOBUF))
                check(await server.post(path, body, PROTOBUF))
            return good

    good = asyncio.run(work(None))
    assert good.startswith(b"k8s\0")

    @FEW
    @given(st.lists(damaged(good), min_size=1, max_size=8))
    def attempt(bodies: list[bytes]) -> None:
        asyncio.run(work(bodies))

    attempt()
