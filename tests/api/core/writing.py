"""A write as the server runs it, without a server: decode, default, admit, prepare, validate,
review."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sully.api import (
    admissionregistration,
    apiextensions,
    apps,
    autoscaling,
    batch,
    coordination,
    core,
    discovery,
    events,
    meta,
    policy,
    resource,
    scheduling,
    storage,
)
from sully.api import sully as ours
from sully.machinery.compat import Compat
from sully.machinery.fields import FieldError
from sully.machinery.gates import Gates
from sully.machinery.schema import Tables
from sully.machinery.serialization.decode import decode
from sully.machinery.strategy import (
    DeferredWorkError,
    Obj,
    ResourceType,
    Strategy,
    WriteContext,
)

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
_GROUPS = (
    meta,
    core,
    apps,
    autoscaling,
    policy,
    coordination,
    discovery,
    events,
    resource,
    scheduling,
    ours,
    storage,
    admissionregistration,
    apiextensions,
    batch,
)


def _tables() -> Tables:
    tables = Tables()
    for group in _GROUPS:
        group.load_tables(tables)
    return tables


TABLES = _tables()
RESOURCES: dict[tuple[str, str], ResourceType] = {
    (resource.group, resource.plural): resource
    for group in _GROUPS
    for resource in group.resources()
}


@dataclass(frozen=True)
class World:
    """What a write can see in addition to its body."""

    now: datetime = NOON
    objects: dict[tuple[str, str, str], Obj] = field(default_factory=dict)
    suffix: str = "abcde"
    strict: bool = False
    accounts: tuple[str, ...] = ("default",)
    limit_ranges: tuple[Obj, ...] = ()

    def lookup(self, resource: str, namespace: str, name: str) -> Obj | None:
        if resource == "serviceaccounts" and name in self.accounts:
            return self.objects.get((resource, namespace, name), {"metadata": {"name": name}})
        return self.objects.get((resource, namespace, name))

    def context(self, subresource: str = "") -> WriteContext:
        return WriteContext(
            now=self.now,
            user="alice",
            groups=(),
            version="v1",
            gates=Gates(),
            lookup=self.lookup,
            new_suffix=lambda: self.suffix,
            limit_ranges=lambda _: list(self.limit_ranges),
            compat=Compat.KUBERNETES if self.strict else Compat.SULLY,
            subresource=subresource,
        )


HERE = World()


def stored_form(resource: ResourceType, body: Any) -> Obj:
    """Decode a body into the form in which it is stored."""
    version = resource.storage_version
    obj = decode(copy.deepcopy(body), TABLES.get(version.package, resource.kind), [])
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return version.to_stored(obj) if version.to_stored else obj


def served(resource: ResourceType, obj: Obj) -> Obj:
    """Return a stored object as clients see it."""
    version = resource.storage_version
    return version.from_stored(obj) if version.from_stored else obj


@dataclass(frozen=True)
class Written:
    """What became of a write."""

    obj: Obj
    problems: list[FieldError]

    def texts(self) -> list[str]:
        return [str(problem) for problem in self.problems]


def create(plural: str, body: Any, world: World = HERE, group: str = "") -> Written:
    """Create an object in the namespace `ns`, unless its metadata has another."""
    resource = RESOURCES[group, plural]
    body = copy.deepcopy(body)
    body.setdefault("metadata", {}).setdefault("name", "x")
    if resource.namespaced:
        body["metadata"].setdefault("namespace", "ns")
    obj, ctx = stored_form(resource, body), world.context()
    resource.strategy.default(obj, ctx)
    resource.strategy.admit(obj, None, ctx)
    resource.strategy.prepare_create(obj, ctx)
    strategy = resource.strategy
    problems = _deferring(
        lambda: [
            *strategy.validate_before_metadata(obj, ctx),
            *strategy.validate_create(obj, ctx),
        ]
    )
    if not problems:
        resource.strategy.review(obj, None, ctx)
    return Written(obj, problems)


def update(
    plural: str, body: Any, old: Obj, world: World = HERE, *, group: str = "", sub: str = ""
) -> Written:
    """Replace an object, itself or through its status endpoint."""
    resource = RESOURCES[group, plural]
    strategy: Strategy | None = resource.status if sub == "status" else resource.strategy
    assert strategy is not None
    obj, ctx = stored_form(resource, body), world.context(sub)
    strategy.default(obj, ctx)
    strategy.admit(obj, old, ctx)
    strategy.prepare_update(obj, old, ctx)
    problems = _deferring(lambda: list(strategy.validate_update(obj, old, ctx)))
    if not problems:
        strategy.review(obj, old, ctx)
    return Written(obj, problems)


def _deferring(step: Callable[[], list[FieldError]]) -> list[FieldError]:
    """Run a step, and repeat it after work that the server would do in a thread."""
    try:
        return step()
    except DeferredWorkError as deferred:
        deferred.work()
        return step()


def cells(plural: str, obj: Obj, world: World = HERE, group: str = "") -> dict[str, Any]:
    """Return the row that a table shows for an object."""
    columns = RESOURCES[group, plural].columns
    return {column.name: column.cell(obj, world.now) for column in columns}
