"""What a kind does on write, in one object per kind.

The server runs every write through the same steps (decode → default → admit → prepare → validate
→ review → commit); a Strategy fills them in. All methods get plain dicts in the storage version of
the kind. `obj` is a fresh copy the method may change in place; `old` is shared and must not be
touched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec.structs import force_setattr

from sully.machinery.compat import Compat
from sully.machinery.fields import FieldError
from sully.machinery.gates import Gates

if TYPE_CHECKING:
    from sully.machinery.customresources.schema import CustomSchema

Obj = dict[str, Any]


@cache
def _names() -> ModuleType:
    """Import the formats of names late: most processes do not need them."""
    from sully.machinery.formats import names

    return names


def _nobody(*_: str) -> bool:
    return False


def _nothing() -> None:
    return None


def _no_conditions(_: Obj) -> list[Obj]:
    return []


def _no_objects(_: str) -> "list[Obj]":
    return []


class WriteContext(msgspec.Struct, frozen=True):
    """What a strategy may know about the request, in addition to the objects."""

    now: datetime
    user: str
    groups: tuple[str, ...]
    version: str  # of the API the client speaks, for example v1beta1
    gates: Gates
    # Reads another object: (resource, namespace, name) → its stored form, or None.
    lookup: Callable[[str, str, str], Obj | None]
    new_suffix: Callable[[], str]  # five characters for generated names
    # Returns the PriorityClass of pods that name none, if there is one.
    default_priority_class: Callable[[], Obj | None] = _nothing
    # Returns the LimitRanges of a namespace, by name.
    limit_ranges: "Callable[[str], list[Obj]]" = _no_objects
    compat: Compat = Compat.SULLY
    subresource: str = ""
    # Which of the lists of `Strategy.empties` the client sent, without items.
    sent_empty: tuple[tuple[str, ...], ...] = ()
    # Whether the user has a right on a subresource of the object: (verb, subresource).
    may: Callable[[str, str], bool] = _nobody


class DeferredWorkError(Exception):
    """A step of a write takes too long for the event loop.

    The server runs `work` in a thread and repeats the step, which then finds its result.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__("a step of the write runs in a thread")
        self.work = work


class Column(msgspec.Struct, frozen=True):
    """One column of the printed table. `cell` gets the stored object and now."""

    name: str
    cell: Callable[[Obj, datetime], Any]
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


_OWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "managedFields")
"""What a status write may change: its precondition, and the managed fields."""


class Strategy(msgspec.Struct, frozen=True):
    """The steps of a write with their default behavior; kinds override what they need.

    reset: paths that this endpoint does not own for field management, as tuples of field names.
    """

    reset: tuple[tuple[str, ...], ...] = ()

    declares_name: ClassVar[bool] = False
    """The schema of Kubernetes declares the format of names, also of generated ones."""
    declared: ClassVar[tuple[str, ...]] = ()
    """Fields, without the positions in lists, whose checks the schema of Kubernetes declares: their
    errors come after all others. Single errors are marked (machinery/declared.py)."""

    def empties(self) -> tuple[tuple[str, ...], ...]:
        """Return the paths of optional lists whose presence counts also if they are empty.

        Decoding leaves empty lists out; those that a client sent are in the context.
        """
        return ()

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in what the client left out; runs on every decoded body, also after a patch."""

    def notices(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Yield texts for Warning headers about what `admit` is going to change."""
        return ()

    def expects(self, obj: Obj) -> tuple[str, str] | None:
        """Name an object (its resource and name) that a new one needs beside it.

        It is on its way if its namespace is new, so a create waits for it, for a moment.
        """
        return None

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Change or refuse (raise ApiError) as admission plugins do; before prepare."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Wipe what clients may not set on create; set generation where the kind has one."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Carry over what this endpoint may not change; bump generation where due."""

    def validate_first(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Yield what is wrong with a new or changed object and reported without anything else."""
        return iter(())

    def validate_before_metadata(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Yield what is wrong with a new object and listed before errors of its metadata."""
        return iter(())

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Yield everything wrong with a new object; metadata is checked by the server."""
        return iter(())

    def validates_metadata(self) -> bool:
        """Report whether errors of the metadata of a new object are listed with its own.

        Of a kind that does not, they are reported only when it has no errors of its own.
        """
        return True

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Yield everything wrong with a change."""
        return iter(())

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Refuse (raise ApiError) something valid, as validating admission does."""

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Yield texts for Warning headers."""
        return ()

    def validate_name(self, name: str) -> Sequence[str]:
        """Return the problems of an object name; default: a DNS subdomain."""
        problems: Sequence[str] = _names().dns_subdomain_problems(name)
        return problems

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Return what is wrong with a finalizer; custom resources and some kinds allow more."""
        problems: Sequence[str] = _names().finalizer_problems(name)
        return problems


def keep_all_but_status(obj: Obj, old: Obj) -> None:
    """Prepare a write to the status endpoint: take everything else from the stored object."""
    sent = obj["metadata"]
    stored = {name: value for name, value in old["metadata"].items() if name not in _OWN_METADATA}
    obj["metadata"] = stored | {name: sent[name] for name in _OWN_METADATA if name in sent}
    obj.update({name: old[name] for name in old if name not in ("metadata", "status")})


class Version(msgspec.Struct, frozen=True):
    """One served version of a kind and how it relates to the storage version."""

    name: str
    package: str  # of its types in the field tables
    to_stored: Callable[[Obj], Obj] | None = None  # None: same shape
    from_stored: Callable[[Obj], Obj] | None = None
    deprecation: str = ""  # text of the Warning header, empty for none
    unconditional_update: bool = True  # may PUT leave out the resourceVersion
    delete_returns_object: bool = False
    enabled: bool = True
    # A custom resource in OCM: values are pruned and kept as sent (structural.py), and
    # there is no strategic merge patch.
    structural: bool = False
    # Of a kind from a CustomResourceDefinition; then the package is not used.
    custom: "CustomSchema | None" = None
    # What versions of a custom resource can have each of their own; None: as the resource.
    columns: tuple[Column, ...] | None = None
    subresources: frozenset[str] | None = None
    selectable: Mapping[str, Callable[[Obj], str]] | None = None
    scale_paths: "ScalePaths | None" = None


class ScalePaths(msgspec.Struct, frozen=True):
    """Where a custom resource has the fields of its scale, as names on the way to them."""

    replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class ResourceType(msgspec.Struct, frozen=True):
    """One resource of the API: its names, versions, strategies and looks."""

    group: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    versions: tuple[Version, ...]  # the first is the storage version
    strategy: Strategy
    status: Strategy | None = None
    # Further subresources that show the object and write a part of it, by name.
    parts: Mapping[str, Strategy] = msgspec.field(default_factory=dict)
    scale: bool = False
    connect: tuple[str, ...] = ()  # subresources handled by the server by name: binding, eviction…
    # Subresources that need running containers: refused by name, listed only if `lists_refused`.
    refused: tuple[str, ...] = ()
    lists_refused: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    # Conditions of the row of an object in a table, such as that a pod is completed.
    row_conditions: Callable[[Obj], list[Obj]] = _no_conditions
    # Field labels for fieldSelector, beside metadata.name(space): label → value of the object.
    selectable: Mapping[str, Callable[[Obj], str]] = msgspec.field(default_factory=dict)
    # Returns the 400 text for an unknown label (group, version, kind, label); None: the default.
    unknown_label: Callable[[str, str, str, str], str] | None = None
    create_on_update: bool = False  # PUT of what does not exist creates it
    grace_period: Callable[[Obj], int] | None = None  # seconds a deletion waits (pods)
    orphans_by_default: bool = False  # a deletion that names no policy orphans the dependents
    storage: str = ""  # name of another resource whose objects these are, in another shape
    # How many fields and list items an object may hold: each costs a write about 10 µs at most.
    most_values: int = 10_000
    list_kind: str = ""  # of a list of objects; empty: the kind followed by List
    virtual: bool = False  # never stored: only `create`, by server/registry/virtual.py
    verbs: tuple[str, ...] = (
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )

    # The name under which the store keeps objects of this resource.
    storage_key: str = ""
    # Whether versions differ in more than their name.
    has_shapes: bool = False
    served: Mapping[str, Version] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        own = f"{self.group}/{self.plural}" if self.group else self.plural
        # Each write asks for these a dozen times. Frozen: the one way to set a field here.
        force_setattr(self, "storage_key", self.storage or own)
        shapes = any(version.to_stored is not None for version in self.versions)
        force_setattr(self, "has_shapes", shapes)
        served = {version.name: version for version in reversed(self.versions) if version.enabled}
        force_setattr(self, "served", served)
        if self.virtual:
            force_setattr(self, "verbs", ("create",))

    @property
    def storage_version(self) -> Version:
        """Return the version in which objects are stored."""
        return self.versions[0]

    def version(self, name: str) -> Version | None:
        """Return a served version by name."""
        return self.served.get(name)
