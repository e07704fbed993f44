"""The verbs of an API server, as everything above `client` sees them.

There are two transports: `http/` is for any API server, `direct.py` calls the embedded one in this
process. They behave the same. Errors are those of `sully.machinery.errors`, and two
without a response: `UnreachableError` and `UnreadableError`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast, get_origin

import msgspec

from sully.client.options import (
    DEFAULT_DELETE,
    DEFAULT_LIST,
    DEFAULT_WATCH,
    DEFAULT_WRITE,
    DeleteOptions,
    ListOptions,
    PatchType,
    WatchOptions,
    WriteOptions,
)
from sully.machinery.errors import InternalError, ServiceUnavailable, Timeout, TooManyRequests

T = TypeVar("T")
U = TypeVar("U")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class UnreachableError(ConnectionError):
    """No response: the server is unreachable, or the connection failed."""

    def __init__(self, why: str, url: str = "") -> None:
        """Keep the reason, with the URL if it is known."""
        super().__init__(f"{url}: {why}" if url else why)
        self.why = why


class UntrustedServerError(UnreachableError):
    """The certificate of the server is not trusted: another server may have answered."""


class WatchStalledError(UnreachableError):
    """A watch delivered nothing, not even a bookmark, for so long that it may be dead."""


class UnreadableError(ValueError):
    """A response does not fit the type it was requested as."""


TRANSIENT = (UnreachableError, TooManyRequests, ServiceUnavailable, InternalError, Timeout)
"""Errors after which a retry may succeed. After a timeout the write may have happened: retry only
what can be repeated."""


class Key(NamedTuple):
    """Names one object of a kind; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return namespace/name, or the name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


COLLECTION = Key("", "")
"""Names no object: all of a kind in all namespaces."""


class ResourceRef(msgspec.Struct, frozen=True):
    """Names a collection, an object, or a subresource."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A resource of the API and the type its objects are read as.

    The type is a frozen Struct or `dict`. A Struct may be a projection that names only the fields
    its reader needs, but it must have `metadata` with `name`, `namespace`, `uid` and
    `resource_version`.
    """

    group: str
    version: str
    plural: str
    kind: str
    type: builtins.type[T]
    namespaced: bool = True
    untyped: bool = field(init=False, repr=False, compare=False)
    """Whether objects are plain dicts; cached, because it is read for every object."""

    def __post_init__(self) -> None:
        """Cache what the type is."""
        plain = self.type is dict or get_origin(self.type) is dict
        object.__setattr__(self, "untyped", plain)

    @property
    def api_version(self) -> str:
        """Return the `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def read_as(self, type_: builtins.type[U]) -> Kind[U]:
        """Return the same resource, read as another type.

        Subresources such as `eviction` answer with another kind: read those as `dict`.
        """
        return cast("Kind[U]", replace(cast("Kind[Any]", self), type=type_))

    def ref(self, key: Key = COLLECTION, subresource: str = "") -> ResourceRef:
        """Name an object of this kind, or with no name the collection."""
        namespace = key.namespace if self.namespaced else ""
        return ResourceRef(self.group, self.version, self.plural, namespace, key.name, subresource)


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A list, or one page of it."""

    items: Sequence[T]
    resource_version: str
    continue_token: str = ""
    """Empty on the last page."""
    remaining: int | None = None
    """How many items follow, where the server knows."""


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One change, or a BOOKMARK: the promise that nothing is missing up to this version."""

    type: EventType
    object: T | None
    """None only in a BOOKMARK."""
    resource_version: str


class Transport(Protocol):
    """An API server.

    Returned objects are shared: Structs are frozen, and a dict is a copy. What is
    sent may be a Struct or a mapping; kind and apiVersion are filled in where they are missing.
    An object's namespace and name are taken from its metadata.
    """

    async def list(
        self, kind: Kind[T], namespace: str = "", options: ListOptions = DEFAULT_LIST
    ) -> Page[T]:
        """Return objects, of all namespaces if none is given."""
        ...

    def watch(
        self, kind: Kind[T], namespace: str = "", options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Watch until the server ends the watch; close it with `aclosing`."""
        ...

    async def get(
        self, kind: Kind[T], key: Key, subresource: str = "", resource_version: str = ""
    ) -> T:
        """Return one object."""
        ...

    async def create(
        self,
        kind: Kind[T],
        obj: object,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> T:
        """Create an object, or send something to a subresource of an existing one."""
        ...

    async def update(
        self,
        kind: Kind[T],
        obj: object,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> T:
        """Replace an object; with a resourceVersion only if it was not changed meanwhile.

        Send what was read as a full type: a projection would wipe the fields it does not name.
        """
        ...

    async def patch(
        self,
        kind: Kind[T],
        key: Key,
        patch: Mapping[str, Any] | Sequence[Any],
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> T:
        """Change parts of an object."""
        ...

    async def apply(
        self,
        kind: Kind[T],
        obj: object,
        options: WriteOptions,
        subresource: str = "",
    ) -> T:
        """Declare the fields this manager wants; `options.field_manager` must be given."""
        ...

    async def delete(
        self, kind: Kind[T], key: Key, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """Delete an object, or begin to: finalizers and grace periods keep it for a while."""
        ...

    async def delete_collection(
        self,
        kind: Kind[T],
        namespace: str = "",
        selection: ListOptions = DEFAULT_LIST,
        options: DeleteOptions = DEFAULT_DELETE,
    ) -> None:
        """Delete all objects that the selectors choose."""
        ...

    async def close(self) -> None:
        """Close connections; calls after this fail."""
        ...
