"""CustomResourceDefinition as a kind of the server, and what serves what the definitions say.

A definition is refused for everything that structural.py and rules.py find. What it describes is
served a moment later, as with a real server: whoever created it must wait for `Established`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from kube.custom import resource_of
from kube.rules import rule_problems
from kube.structural import problems
from sully.api.core import generations
from sully.client.options import WatchOptions
from sully.client.transport import Key, Kind, Transport
from sully.machinery.fields import FieldError, Path
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]
GROUP = "apiextensions.k8s.io"
PACKAGE = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
KIND = Kind(
    GROUP,
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    dict,
    namespaced=False,
)
TABLE = """\
CustomResourceDefinition: A kind that somebody else brings.
  apiVersion string: Group and version.
  kind string: The kind.
  metadata meta.ObjectMeta emit: Name and more.
  spec CustomResourceDefinitionSpec required emit: What it is.
  status CustomResourceDefinitionStatus: What became of it.

CustomResourceDefinitionSpec: What a kind is.
  conversion object: How versions are converted.
  group string required emit: Its group.
  names CustomResourceDefinitionNames required emit: Its names.
  preserveUnknownFields bool: Whether nothing is pruned.
  scope string required emit: Whether it has namespaces.
  versions []CustomResourceDefinitionVersion required null atomic: Its versions.

CustomResourceDefinitionNames: The names of a kind.
  categories []string atomic: Groups of kinds.
  kind string required emit: One.
  listKind string: A list of them.
  plural string required emit: In paths.
  shortNames []string atomic: For people.
  singular string: For people.

CustomResourceDefinitionVersion: One version.
  additionalPrinterColumns []CustomResourceColumnDefinition atomic: What is printed.
  deprecated bool: Whether it is on its way out.
  deprecationWarning string: What is said about that.
  name string required emit: Its name.
  schema object: Its shape.
  served bool required emit: Whether it is served.
  storage bool required emit: Whether it is stored.
  subresources object: What lies below objects.

CustomResourceColumnDefinition: One column.
  description string: What it shows.
  format string: The form of it.
  jsonPath string required emit: Where it is.
  name string required emit: Its head.
  priority int32: When it is shown.
  type string required emit: Its type.

CustomResourceDefinitionStatus: What became of a definition.
  acceptedNames CustomResourceDefinitionNames emit: Its names.
  conditions []CustomResourceDefinitionCondition map(type): How it is.
  storedVersions []string atomic: What is stored.

CustomResourceDefinitionCondition: One aspect.
  lastTransitionTime Time: Since when.
  message string: In words.
  reason string: In a word.
  status string required emit: Whether.
  type string required emit: What.

CustomResourceDefinitionList: Many.
  apiVersion string: Group and version.
  items []CustomResourceDefinition required null: They.
  kind string: The kind.
  metadata meta.ListMeta emit: Which state.
"""


class DefinitionStrategy(Strategy):
    """Writes to definitions."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj.pop("status", None)
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes."""
        obj.pop("status", None)
        obj |= {"status": old["status"]} if "status" in old else {}
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Refuse what a server could not serve."""
        return _wrong(obj)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Refuse what a server could not serve."""
        return _wrong(obj)


class DefinitionStatusStrategy(Strategy):
    """Writes to the status."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)


def _wrong(obj: Obj) -> Iterator[FieldError]:
    found = list(problems(obj))
    for version in obj["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        found += rule_problems(schema, "schema")
    for text in found:
        at, _, why = text.partition(": ")
        yield Path(at).invalid("", why)


def add_kind(scheme: Scheme) -> None:
    """Let a server have definitions."""
    scheme.tables.load(PACKAGE, "apiextensions", TABLE)
    scheme.add(
        ResourceType(
            group=GROUP,
            kind=KIND.kind,
            plural=KIND.plural,
            singular="customresourcedefinition",
            namespaced=False,
            versions=(Version("v1", PACKAGE),),
            strategy=DefinitionStrategy(reset=(("status",),)),
            status=DefinitionStatusStrategy(reset=(("spec",),)),
            short_names=("crd", "crds"),
        )
    )


async def establish(transport: Transport, scheme: Scheme, changed: Callable[[], None]) -> None:
    """Serve what definitions describe, as they come and change."""
    known: dict[str, Any] = {}
    async for definition in _followed(transport):
        name = definition["metadata"]["name"]
        if known.get(name) == definition["spec"]:
            continue
        known[name] = definition["spec"]
        scheme.add(resource_of(scheme.tables, definition))
        changed()
        condition = {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}
        await transport.patch(
            KIND,
            Key("", name),
            {"status": {"acceptedNames": definition["spec"]["names"], "conditions": [condition]}},
            subresource="status",
        )


async def _followed(transport: Transport) -> AsyncIterator[Obj]:
    page = await transport.list(KIND)
    for each in page.items:
        yield each
    options = WatchOptions(resource_version=page.resource_version)
    async with aclosing(transport.watch(KIND, options=options)) as events:
        async for event in events:
            if event.object is not None and event.type in ("ADDED", "MODIFIED"):
                yield event.object
