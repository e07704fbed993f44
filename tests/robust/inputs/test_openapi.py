"""Requests made from the served OpenAPI documents, right and wrong: no 5xx, and an answer soon.

`SULLY_FUZZ_EXAMPLES` sets how many per operation, `SULLY_FUZZ_SEED` which; `make robust` asks for
more, and for others, than `make test`.
"""

import itertools
import json
import os
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from e2e.raw import Raw
from robust.inputs.clients import Client
from robust.inputs.named import OBJECTS, collection_of, name_in
from sully.testing.cluster import Process, process
from sully.testing.patience import PATIENCE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EXAMPLES = int(os.environ.get("SULLY_FUZZ_EXAMPLES", "0"))
SEED = int(os.environ.get("SULLY_FUZZ_SEED", "1"))
GROUPS = 4
"""Documents are dealt to so many tests, so that a failure shows where it is."""
REFUSED_OR_CREATED = (201, 403, 409)
"""403 after an earlier request deleted the namespace, or its service account."""


@pytest.fixture(scope="module")
def up() -> Iterator[Process]:
    """Run a server that nothing else depends on: these requests delete what they find."""
    with process("--store", "memory", "--log-level", "error") as server:
        yield server


@pytest.fixture(scope="module")
def session(up: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[requests.Session]:
    """Return a connection as the admin."""
    client = Client(up.kubeconfig, tmp_path_factory.mktemp("client"))
    with requests.Session() as opened:
        opened.trust_env = False  # nor the authorities that it names
        opened.verify, opened.cert = str(client.ca), str(client.pem)
        yield opened


@pytest.fixture(scope="module")
def operations(up: Process, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return every operation of every document."""
    raw = Raw.admin(up.kubeconfig, tmp_path_factory.mktemp("raw"))
    index = raw.request("GET", "/openapi/v3").json()["paths"]
    operations: list[Any] = []
    for entry in index.values():
        document = raw.request("GET", entry["serverRelativeURL"]).json()
        schema = schemathesis.openapi.from_dict(document)
        results: Any = schema.get_all_operations()
        operations += [result.ok() for result in results]
    return operations


def test_every_named_operation_has_an_object_that_exists(
    operations: list[Any], session: requests.Session, up: Process
) -> None:
    for collection in OBJECTS:
        _create(collection, session, up.url)
    named = {operation.path for operation in operations if "{name}" in operation.path}
    own = {path for path in named if path.endswith("/{name}")}

    assert len(named) > 100
    for path in sorted(named):
        assert collection_of(path), path
    for path in sorted(own):
        name = name_in(collection_of(path) or "")
        result = path.replace("{namespace}", "default").replace("{name}", name)
        assert session.get(f"{up.url}{result}", timeout=PATIENCE).status_code == 200, result


def chosen(operations: list[Any], part: int) -> list[Any]:
    """Return one share of the operations; in a short run not all of it."""
    share = operations[part::GROUPS]
    return share if EXAMPLES else random.Random(SEED).sample(share, min(len(share), 50))


@pytest.mark.parametrize("part", range(GROUPS))
def test_operations(
    part: int, operations: list[Any], session: requests.Session, up: Process
) -> None:
    numbers = itertools.count(SEED * 1_000_000 + part * 100_000)
    for operation in chosen(operations, part):
        _try(operation, session, up.url, next(numbers))
    assert session.get(f"{up.url}/readyz", timeout=PATIENCE).status_code == 200


def _try(operation: Any, session: requests.Session, url: str, number: int) -> None:
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    @seed(number)
    @settings(
        max_examples=EXAMPLES or 2,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases, st.booleans())
    def attempt(case: Any, known: bool) -> None:
        if known:
            # So that requests come further than "not found".
            collection = collection_of(operation.path)
            exists = {"namespace": "default", "name": name_in(collection) if collection else ""}
            case.path_parameters = {
                key: exists.get(key) or value for key, value in case.path_parameters.items()
            }
            if collection:
                _create(collection, session, url)
        # A watch continues by design.
        case.query = {key: value for key, value in (case.query or {}).items() if key != "watch"}
        _check(case, session, url)

    attempt()


def _create(collection: str, session: requests.Session, url: str) -> None:
    """Create the object of a collection, unless it exists: an earlier request may delete it."""
    answer = session.post(f"{url}{collection}", json=OBJECTS[collection], timeout=PATIENCE)
    assert answer.status_code in REFUSED_OR_CREATED, answer.content


def _check(case: Any, session: requests.Session, url: str) -> None:
    answer = case.call(
        base_url=url, session=session, timeout=PATIENCE, verify=session.verify, cert=session.cert
    )
    shown = f"{case.method} {case.formatted_path} {case.query} {case.body!r:.2000}"
    # Kubernetes answers a version from the future as a time-out, because it waits for it.
    future = answer.status_code == 504 and b'"ResourceVersionTooLarge"' in answer.content
    assert answer.status_code < 500 or future, f"{shown}\n{answer.content[:2000]!r}"
    if answer.status_code >= 400 and answer.content[:1] == b"{":
        assert json.loads(answer.content)["kind"] == "Status", shown
