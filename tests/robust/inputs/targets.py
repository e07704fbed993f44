"""What reads input of others, as functions of bytes: a target raises only if Sully has a defect.

The corpus beside this file has inputs for each, and test_corpus.py reads all of them. `make robust
ARGS=atheris` searches for more.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from cli.commandlines import parsed
from robust.inputs import notes
from robust.inputs.test_fuzz import CORE, GOOD, RESOURCE, check, encoded
from robust.inputs.test_fuzz_decoders import accesses
from serving import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML, Asgi, local
from sully.cli.main import COMMANDS, main
from sully.client.kubeconfig.access import tls_context
from sully.client.kubeconfig.credentials import NO_CREDENTIAL, AccessError
from sully.server.negotiation import PROTOBUF
from sully.store.backup.archive import BackupError
from sully.store.backup.restore import restore

CORPUS = Path(__file__).with_name("corpus")
Target = Callable[[bytes], None]
Step = Callable[[Asgi, bytes], Coroutine[Any, Any, None]]
PATHS = tuple(GOOD)
PATCHES = (JSON_PATCH, MERGE, STRATEGIC, APPLY)
EXIT_CODES = (0, 1, 2, 3)
"""Of commands that end as documented."""


def _chosen(data: bytes, number: int) -> tuple[int, bytes]:
    """Return a number below another from the first byte, and the rest."""
    return (data[0] % number if data else 0), data[1:]


async def body(server: Asgi, data: bytes) -> None:
    """Create and replace an object; the first byte chooses its kind and media type."""
    number, content = _chosen(data, len(PATHS) * 2)
    path, media = PATHS[number // 2], (JSON, YAML)[number % 2]
    check(await server.post(path, content, media))
    check(await server.put(f"{path}/m", content, media))


async def patch(server: Asgi, data: bytes) -> None:
    """Patch an object; the first byte chooses its kind and the type of the patch."""
    number, content = _chosen(data, len(PATHS) * len(PATCHES))
    path, media = PATHS[number // len(PATCHES)], PATCHES[number % len(PATCHES)]
    await server.post(path, GOOD[path])
    check(await server.patch(f"{path}/m", content, media, fieldManager="f", force="true"))


async def protobuf(server: Asgi, data: bytes) -> None:
    """Create and replace an object in protobuf; the first byte chooses its kind."""
    number, content = _chosen(data, len(PATHS))
    check(await server.post(PATHS[number], content, PROTOBUF))
    check(await server.put(f"{PATHS[number]}/m", content, PROTOBUF))


async def selector(server: Asgi, data: bytes) -> None:
    """List with a label selector and a field selector, one on each line."""
    labels, _, fields = data.decode(errors="replace").partition("\n")
    check(await server.get(f"{CORE}/pods", labelSelector=labels, fieldSelector=fields))


async def expression(server: Asgi, data: bytes) -> None:
    """Create a class with a CEL expression."""
    spec = {"selectors": [{"cel": {"expression": data.decode(errors="replace")}}]}
    made = {"metadata": {"generateName": "m-"}, "spec": spec}
    check(await server.post(f"{RESOURCE}/deviceclasses", encoded(made)))


def kubeconfig(data: bytes) -> None:
    """Read a kubeconfig, and prepare a connection with each context."""
    for access in accesses(data):
        try:
            tls_context(access, NO_CREDENTIAL)
        except AccessError:
            continue


def snapshot(data: bytes) -> None:
    """Show the devices of a saved fleet."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "saved.yaml"
        file.write_bytes(data)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            code = main(["devices", "--snapshot", str(file)])
        assert code in EXIT_CODES, code


def backup(data: bytes) -> None:
    """Restore a backup over a directory, which stays as it was if the backup is refused."""
    with TemporaryDirectory() as folder:
        target, saved = Path(folder) / "data", Path(folder) / "saved"
        target.mkdir(mode=0o700)
        (target / "mine").write_bytes(b"mine")
        saved.write_bytes(data)
        try:
            restore(saved, target, force=True)
        except BackupError:
            assert [path.name for path in target.iterdir()] == ["mine"]
        shutil.rmtree(target)


def arguments(data: bytes) -> None:
    """Parse a command line; its words are separated by zero bytes."""
    words = data.decode(errors="replace").split("\0")
    if words[0] not in COMMANDS:
        words.insert(0, next(iter(COMMANDS)))
    with redirect_stdout(StringIO()):
        try:
            parsed(*words)
        except (click.UsageError, click.exceptions.Exit):
            return


STEPS: dict[str, Step] = {
    "body": body,
    "patch": patch,
    "protobuf": protobuf,
    "selector": selector,
    "expression": expression,
}
FUNCTIONS: dict[str, Target] = {
    "kubeconfig": kubeconfig,
    "snapshot": snapshot,
    "backup": backup,
    "arguments": arguments,
    "annotation": notes.annotation,
    "credential": notes.credential,
    "settings": notes.settings,
    "response": notes.response,
    "placement": notes.placement,
}
NAMES = (*STEPS, *FUNCTIONS)


def target(name: str) -> Target:
    """Return a target; those that need a server get one for each input."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    step = STEPS[name]

    async def serve(data: bytes) -> None:
        async with local() as server:
            account = {"metadata": {"name": "default"}}
            (await server.post(f"{CORE}/serviceaccounts", account)).ok(201)
            await step(server, data)

    return lambda data: asyncio.run(serve(data))


def inputs(name: str) -> list[Path]:
    """Return the corpus of a target."""
    return sorted((CORPUS / name).iterdir())
