"""While a long list is read, selected and written, other requests are served."""

from __future__ import annotations

import asyncio

import manifests
from serving import Asgi, local

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
OBJECTS = 2500
TURNS = 12
"""How often others run at least; a watch starts and ends in nine turns, however long it is."""
READS = {
    "a list": ("", "application/json"),
    "a table": ("", TABLE),
    "protobuf": ("", PROTOBUF),
    "YAML": ("", "application/yaml"),
    "a table in YAML": ("", TABLE.replace("json", "yaml", 1)),
    "for people": ("?pretty=1", "application/json"),
    "a selection": ("?labelSelector=not%3Dthere", "application/json"),
    "a watch": ("?watch=1&resourceVersion=0", "application/json"),
    "a watch as a table": ("?watch=1&resourceVersion=0", TABLE),
    "a watch in protobuf": ("?watch=1&resourceVersion=0", f"{PROTOBUF};stream=watch"),
    "a watch of what happened": (
        "?watch=1&resourceVersion=10&labelSelector=last",
        "application/json",
    ),
    "a watch of a selection": (
        "?watch=1&resourceVersion=0&labelSelector=last",
        "application/json",
    ),
}


async def _turns_of_others(server: Asgi, query: str, accept: str) -> int:
    """Return how often another task runs while a request is answered."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.ensure_future(other())
    try:
        if "watch" in query:
            async with server.watch(f"{CONFIG_MAPS}{query}", {"accept": accept}) as answer:
                await answer.reached(lambda seen: b"z-last" in b"".join(seen.chunks))
        elif "dryRun" in query:
            assert (await server.delete(f"{CONFIG_MAPS}{query}")).code == 200
        else:
            assert (await server.get(f"{CONFIG_MAPS}{query}", accept)).code == 200
    finally:
        running.cancel()
    return turns


async def _fill(server: Asgi, **annotations: str) -> None:
    for number in range(OBJECTS):
        body = manifests.body("ConfigMap", f"c-{number:05}", annotations=annotations)
        (await server.post(CONFIG_MAPS, body)).ok()


async def test_others_are_served_while_all_are_deleted() -> None:
    async with local() as server:
        await _fill(server)

        # The answer has five pieces.
        assert await _turns_of_others(server, "?dryRun=All", "") >= TURNS


async def test_others_are_served_meanwhile() -> None:
    async with local() as server:
        await _fill(server, a="x" * 500)
        last = manifests.body("ConfigMap", "z-last", labels={"last": ""})
        (await server.post(CONFIG_MAPS, last)).ok()

        turns = {
            name: await _turns_of_others(server, query, accept)
            for name, (query, accept) in READS.items()
        }

    assert {name: number for name, number in turns.items() if number < TURNS} == {}
