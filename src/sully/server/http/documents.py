"""Pages that describe the API: discovery and OpenAPI."""

from collections.abc import Awaitable, Callable

from sully.machinery.errors import NotAcceptable
from sully.machinery.scheme import Scheme
from sully.machinery.serialization.codec import to_json, to_yaml
from sully.server import discovery
from sully.server.http.http_request import HttpRequest
from sully.server.negotiation import check_representation, not_acceptable
from sully.server.openapi.documents import PROTOBUF, PROTOBUF_FORMS, OpenAPI

RELEASE = "v1.37.0"
TEXT = "text/plain; charset=utf-8"
Page = Callable[[HttpRequest], Awaitable[None]]
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"


class Documents:
    """Finds the page behind a path."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._aggregated = discovery.AggregatedDiscovery(scheme)
        self._openapi = OpenAPI(scheme, RELEASE)

    def page(self, path: str) -> Page | None:
        """Return the handler of a path, None if there is no such page."""
        parts = path.strip("/").split("/")
        if parts[0] == "openapi":
            return self._openapi_page(parts[1:])
        match parts:
            case ["api"]:
                return lambda http_request: self._root(http_request, core=True)
            case ["apis"]:
                return lambda http_request: self._root(http_request, core=False)
            case ["api", version]:
                resources = discovery.api_resource_list(self._scheme, "", version)
                return self._page(resources, check_representation)
            case ["apis", group]:
                return self._page(discovery.api_group(self._scheme, group), _check_group)
            case ["apis", group, version]:
                resources = discovery.api_resource_list(self._scheme, group, version)
                return self._page(resources, check_representation)
            case [""]:
                return self._paths
            case _:
                return None

    def _openapi_page(self, parts: list[str]) -> Page | None:
        self._openapi.refresh()
        match parts:
            case ["v2"]:
                return self._swagger
            case ["v3"]:
                return self._index
            case ["v3", *rest]:
                return lambda http_request: self._v3(http_request, "/".join(rest))
            case _:
                return None

    def _page(self, content: object | None, check: Callable[[str], object]) -> Page | None:
        if content is None:
            return None

        async def respond(http_request: HttpRequest) -> None:
            check(http_request.header("accept"))
            await _send(http_request, content)

        return respond

    async def _root(self, http_request: HttpRequest, *, core: bool) -> None:
        form = aggregated_form(http_request.header("accept"))
        if form:
            document = self._aggregated.get(core=core, form=form)
            await _cached(http_request, document, _AGGREGATED.format(form=form))
        elif core:
            check_representation(http_request.header("accept"))
            host = http_request.header("host")
            await _send(http_request, discovery.api_versions(host))
        else:
            _check_group(http_request.header("accept"))
            await _send(http_request, discovery.api_group_list(self._scheme))

    async def _swagger(self, http_request: HttpRequest) -> None:
        accept = http_request.header("accept")
        if any(part.split(";")[0].strip() in PROTOBUF_FORMS for part in accept.split(",")):
            await _cached(http_request, self._openapi.swagger_protobuf(), PROTOBUF)
        else:
            await _cached(http_request, self._openapi.swagger(), "application/json")

    async def _index(self, http_request: HttpRequest) -> None:
        await _cached(http_request, self._openapi.index(), TEXT)

    async def _v3(self, http_request: HttpRequest, name: str) -> None:
        document = self._openapi.get(name)
        if document is None:
            await http_request.respond(404, b"", "")
        else:
            await _cached(http_request, document, "application/json")

    async def _paths(self, http_request: HttpRequest) -> None:
        paths = ["/api", "/api/v1", "/apis"]
        for group, versions in discovery.named_groups(self._scheme):
            paths.append(f"/apis/{group}")
            paths += [f"/apis/{group}/{version}" for version in versions]
        paths += ["/healthz", "/livez", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3"]
        await http_request.respond(200, to_json({"paths": [*sorted(paths), "/readyz", "/version"]}))


async def _send(http_request: HttpRequest, content: object) -> None:
    if "application/yaml" in http_request.header("accept").split(";")[0]:
        await http_request.respond(200, to_yaml(content), "application/yaml")
    else:
        await http_request.respond(200, to_json(content))


def _check_group(accept: str) -> None:
    """Reject what neither a group nor the list of them can be sent as."""
    try:
        check_representation(accept)
    except NotAcceptable:
        raise not_acceptable() from None


async def _cached(http_request: HttpRequest, document: discovery.Document, media: str) -> None:
    headers = {"etag": document.etag, "vary": "Accept"}
    if http_request.header("if-none-match") == document.etag:
        await http_request.respond(304, b"", "", headers)
    else:
        await http_request.respond(200, document.body, media, headers)


def aggregated_form(accept: str) -> str:
    """Return which aggregated form a client prefers, empty for the plain one.

    Raises NotAcceptable if a client accepts only versions of it that do not exist.
    """
    unknown = False
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        options = dict(part.partition("=")[::2] for part in parameters)
        if media not in ("application/json", "*/*", "application/*"):
            continue
        if options.get("as") != "APIGroupDiscoveryList":
            return ""
        if options.get("g") == "apidiscovery.k8s.io" and options.get("v") in ("v2", "v2beta1"):
            return options["v"]
        unknown = True
    if unknown:
        raise not_acceptable()
    return ""
