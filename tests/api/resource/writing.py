"""A write as the server runs it, without a server: decode, convert, default, prepare, validate."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sully.api import meta, resource
from sully.api.tables import load
from sully.machinery.compat import Compat
from sully.machinery.declared import in_order
from sully.machinery.fields import FieldError
from sully.machinery.gates import Gates, parse_gates
from sully.machinery.schema import Tables
from sully.machinery.serialization.decode import decode
from sully.machinery.strategy import Obj, ResourceType, Version, WriteContext

NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
NOW = "2026-03-01T12:00:00Z"


def _tables() -> Tables:
    tables = Tables()
    meta.load_tables(tables)
    load(tables, "sully.api.core", "io.k8s.api.core.v1", "selectors.fields")
    resource.load_tables(tables)
    return tables


TABLES = _tables()
RESOURCES: dict[str, ResourceType] = {one.plural: one for one in resource.resources()}
BY_KIND: dict[str, ResourceType] = {one.kind: one for one in RESOURCES.values()}


def gates(**switches: bool) -> Gates:
    return Gates(switches)


REFERENCE = parse_gates("", Compat.KUBERNETES)


@dataclass(frozen=True)
class Writer:
    """The circumstances of a write."""

    version: str = "v1"
    now: datetime = NOON
    user: str = "alice"
    gates: Gates = field(default_factory=Gates)
    compat: Compat = Compat.SULLY
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def context(self, subresource: str = "") -> WriteContext:
        return WriteContext(
            now=self.now,
            user=self.user,
            groups=(),
            version=self.version,
            gates=self.gates,
            lookup=self._lookup,
            new_suffix=lambda: "abcde",
            compat=self.compat,
            subresource=subresource,
        )

    def _lookup(self, plural: str, namespace: str, name: str) -> Obj | None:
        labels = self.namespaces.get(name)
        if plural != "namespaces" or namespace or labels is None:
            return None
        return {"metadata": {"name": name, "labels": dict(labels)}}

    def read(self, body: Obj) -> Obj:
        """Decode a body into the stored form, with defaults."""
        kind = BY_KIND[body["kind"]]
        version = served(kind, self.version)
        obj = decode(copy.deepcopy(body), TABLES.get(version.package, kind.kind), [])
        obj = version.to_stored(obj) if version.to_stored else obj
        kind.strategy.default(obj, self.context())
        return obj

    def create(self, body: Obj) -> "Written":
        strategy, ctx = BY_KIND[body["kind"]].strategy, self.context()
        obj = self.read(body)
        strategy.prepare_create(obj, ctx)
        errors = list(strategy.validate_before_metadata(obj, ctx))
        errors += strategy.validate_create(obj, ctx)
        return Written(obj, self._in_order(body, errors), list(strategy.warnings(obj, None, ctx)))

    def update(self, body: Obj, old: Obj, *, status: bool = False) -> "Written":
        kind = BY_KIND[body["kind"]]
        strategy = kind.status if status else kind.strategy
        assert strategy is not None
        ctx, before = self.context("status" if status else ""), copy.deepcopy(old)
        obj = self.read(body)
        strategy.prepare_update(obj, old, ctx)
        errors = list(strategy.validate_update(obj, old, ctx))
        assert old == before, "a strategy must not touch the stored object"
        return Written(obj, self._in_order(body, errors), list(strategy.warnings(obj, old, ctx)))

    def _in_order(self, body: Obj, errors: list[FieldError]) -> list[FieldError]:
        package = served(BY_KIND[body["kind"]], self.version).package
        return in_order(errors, TABLES.get(package, body["kind"]))


@dataclass(frozen=True)
class Written:
    """What came out of a write."""

    obj: Obj
    errors: list[FieldError]
    warnings: list[str]

    @property
    def texts(self) -> list[str]:
        return [str(error) for error in self.errors]

    @property
    def spec(self) -> Any:
        assert self.texts == []
        return self.obj["spec"]


def served(kind: ResourceType, version: str) -> Version:
    result = kind.version(version)
    assert result is not None, f"{kind.kind} is not served in {version}"
    return result
