"""lightkube: a client with types made from the API's own description."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lightkube
import pytest
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e


@pytest.fixture
def client(kubeconfig: Path, namespace: str) -> Iterator[lightkube.Client]:
    """Log in with the kubeconfig."""
    config = lightkube.KubeConfig.from_file(str(kubeconfig)).get()
    with lightkube.Client(
        config=config, namespace=namespace, field_manager="light", trust_env=False
    ) as made:
        yield made


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"app": "light"}), data=data)


def test_objects_live_and_die(client: Any) -> None:
    made = client.create(config_map("a", x="1"))
    made.data["y"] = "2"
    client.replace(made)
    client.patch(ConfigMap, "a", {"data": {"z": "3"}}, patch_type=PatchType.MERGE)
    read = client.get(ConfigMap, "a")
    listed = [item.metadata.name for item in client.list(ConfigMap, labels={"app": "light"})]
    client.delete(ConfigMap, "a")

    assert read.data == {"x": "1", "y": "2", "z": "3"}
    assert listed == ["a"]
    with pytest.raises(ApiError) as caught:
        client.get(ConfigMap, "a")
    assert (caught.value.status.code, caught.value.status.reason) == (404, "NotFound")


def test_lists_come_in_pages(client: Any) -> None:
    for number in range(7):
        client.create(config_map(f"page-{number}"))

    names = [
        item.metadata.name for item in client.list(ConfigMap, labels={"app": "light"}, chunk_size=3)
    ]

    assert names == [f"page-{number}" for number in range(7)]


def test_apply_owns_fields(client: lightkube.Client, namespace: str) -> None:
    def applied(value: str, manager: str, *, force: bool = False) -> Any:
        expected = ConfigMap(
            apiVersion="v1",
            kind="ConfigMap",
            metadata=ObjectMeta(name="owned", namespace=namespace),
            data={"x": value},
        )
        return client.apply(expected, field_manager=manager, force=force)

    applied("1", "one")
    with pytest.raises(ApiError) as caught:
        applied("2", "two")
    assert caught.value.status.code == 409
    forced = applied("2", "two", force=True)

    assert forced.data == {"x": "2"}
    assert [entry.manager for entry in forced.metadata.managedFields] == ["two"]


def test_a_watch_shows_what_happens(client: Any) -> None:
    client.create(config_map("first"))
    watching = client.watch(ConfigMap, labels={"app": "light"}, server_timeout=PATIENCE)
    # It connects with the first request. What was created and deleted before is not reported.
    results = [_seen(next(watching))]
    client.create(config_map("w", x="1"))
    client.patch(ConfigMap, "w", {"data": {"x": "2"}})
    client.delete(ConfigMap, "w")

    results += [_seen(event) for event in islice(watching, 3)]

    assert results == [("ADDED", "first"), ("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def _seen(event: tuple[str, Any]) -> tuple[str, str]:
    return event[0], event[1].metadata.name
