"""The promise of list and watch: events on top of a list give the list as it is now.

For any writes, any place to start from and any selector.
"""

from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests import secret
from property_examples import examples
from serving import Asgi, Obj, local

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"


async def change(server: Asgi, step: str) -> None:
    name, verb = step.split()
    path = f"{SECRETS}/{name}"
    labels = {"a": {"t": "a"}, "b": {"t": "b"}, "none": None}
    if verb == "delete":
        await server.delete(path)
        return
    body = {"metadata": {"labels": labels[verb]}}
    if (await server.patch(path, {"metadata": {"labels": None}} | body)).code == 404:
        await server.post(SECRETS, secret(name, labels=labels[verb] or {}))


def apply_events(state: dict[str, Obj], events: list[Obj]) -> dict[str, Obj]:
    """Do to a list what a client's cache does, strictly."""
    for event in events:
        obj = {k: v for k, v in event["object"].items() if k not in ("kind", "apiVersion")}
        name = obj["metadata"]["name"]
        if event["type"] == "ADDED":
            assert name not in state
            state[name] = obj
        elif event["type"] == "MODIFIED":
            assert name in state
            state[name] = obj
        else:
            assert event["type"] == "DELETED"
            del state[name]
    return state


async def check_that_events_lead_to_the_list(
    steps: list[str], split: int, selector: dict[str, str]
) -> None:
    async with local() as server:
        server.api.watcher.bookmark_seconds = 0.001
        for step in steps[:split]:
            await change(server, step)
        listed = (await server.get(SECRETS, **selector)).ok()
        start = listed["metadata"]["resourceVersion"]
        for step in steps[split:]:
            await change(server, step)
        final = (await server.get(SECRETS, **selector)).ok()["items"]
        query = {**selector, "resourceVersion": start, "allowWatchBookmarks": "true"}
        async with server.watch(SECRETS, **query) as answer:
            # A bookmark reports that all has been reported.
            events = await answer.until(lambda seen: b'"BOOKMARK"' in b"".join(seen.chunks))

        state = {item["metadata"]["name"]: item for item in listed["items"]}
        reported = [event for event in events if event["type"] != "BOOKMARK"]
        want = {item["metadata"]["name"]: item for item in final}
        assert apply_events(state, reported) == want


WRITES = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["a", "b", "none", "delete"])).map(" ".join),
    max_size=12,
)
SELECTORS = [
    {},
    {"labelSelector": "t=a"},
    {"labelSelector": "t in (a,b)"},
    {"labelSelector": "t=b"},
    {"fieldSelector": "metadata.name=x"},
    {"labelSelector": "t", "fieldSelector": "metadata.name!=y"},
]


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(steps=WRITES, split=st.integers(0, 12), selector=st.sampled_from(SELECTORS))
async def test_list_and_watch_give_the_final_list(
    steps: list[str], split: int, selector: dict[str, str]
) -> None:
    await check_that_events_lead_to_the_list(steps, split, selector)


@pytest.mark.parametrize("selector", SELECTORS, ids=str)
async def test_every_order_of_a_few_writes(selector: dict[str, str]) -> None:
    for order in permutations(["x a", "x b", "x none", "x delete"]):
        for split in (0, 2):
            await check_that_events_lead_to_the_list(list(order), split, selector)
