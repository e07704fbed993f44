"""The documents under /openapi, encoded once and cached.

`/openapi/v3` lists one address for each group and version; the address carries a hash of the
document, so clients may keep what they fetched from it for good. `/openapi/v2` has one document in
two encodings.
"""

from typing import Any
from urllib.parse import quote

from sully.machinery.scheme import Scheme
from sully.server.discovery import Document, document
from sully.server.openapi import gnostic, v2, v3
from sully.server.openapi.operations import GroupVersion

# Content type of the protobuf form. Old clients request it with an `@`, which Go's parser of media
# types rejects in a response: the response always has this spelling.
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_FORMS = frozenset((PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"))


class OpenAPI:
    """The documents of one scheme, generated on the first request."""

    def __init__(self, scheme: Scheme, release: str) -> None:
        self._scheme, self._release = scheme, release
        self._places: dict[str, GroupVersion] | None = None
        self._v3: dict[str, Document] = {}
        self._index: Document | None = None
        self._v2: Document | None = None
        self._v2_protobuf: Document | None = None
        self._generation = scheme.generation

    def refresh(self) -> bool:
        """Drop the documents that kinds of definitions are in, if those changed."""
        if self._generation == self._scheme.generation:
            return False
        self._generation = self._scheme.generation
        self._places = self._index = self._v2 = self._v2_protobuf = None
        custom = {
            GroupVersion(resource.group, version.name).root
            for resource in self._scheme.resources()
            for version in resource.versions
            if version.custom is not None
        }
        places = self._group_versions()
        for name in [name for name in self._v3 if name in custom or name not in places]:
            if name != "version":
                del self._v3[name]
        return True

    def index(self) -> Document:
        """Return `/openapi/v3`. This generates all documents: it has their hashes."""
        if self._index is None:
            names = sorted((*self._group_versions(), "version"))
            paths = {name: {"serverRelativeURL": self._address(name)} for name in names}
            self._index = document({"paths": paths})
        return self._index

    def get(self, name: str) -> Document | None:
        """Return `/openapi/v3/<name>`, such as `api/v1`; None for what is not served."""
        built = self._v3.get(name)
        if built is None:
            content = self._build(name)
            if content is None:
                return None
            built = self._v3[name] = document(content)
        return built

    def swagger(self) -> Document:
        """Return `/openapi/v2` as JSON."""
        if self._v2 is None:
            self._v2 = document(v2.build(self._scheme, self._release))
        return self._v2

    def swagger_protobuf(self) -> Document:
        """Return `/openapi/v2` as protobuf; it has the ETag of the JSON form."""
        if self._v2_protobuf is None:
            body = gnostic.encode(v2.build(self._scheme, self._release))
            self._v2_protobuf = Document(body, self.swagger().etag)
        return self._v2_protobuf

    def _group_versions(self) -> dict[str, GroupVersion]:
        if self._places is None:
            self._places = {at.root: at for at in v2.group_versions(self._scheme)}
        return self._places

    def _build(self, name: str) -> dict[str, Any] | None:
        if name == "version":
            return v3.build_version(self._release)
        at = self._group_versions().get(name)
        return v3.build(self._scheme, at.group, at.version, self._release) if at else None

    def _address(self, name: str) -> str:
        built = self.get(name)
        return f"/openapi/v3/{quote(name)}?hash={built.hash if built else ''}"
