"""Issues service account tokens: the `token` subresource of service accounts.

The response is the request with the token in its status. Nothing is stored: a token is valid as
long as its signature, expiry, account and bound object are (service_accounts.py).
"""

from datetime import timedelta
from typing import Any

from sully.api.authentication import AUTHENTICATION, validate_token_request
from sully.machinery.errors import BadRequest, conflict, invalid, not_found
from sully.machinery.fields import Path
from sully.machinery.formats.timestamps import format_time
from sully.machinery.patch.ownership import managed
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj
from sully.server.authentication import tokens
from sully.server.authentication.keys import SigningKey
from sully.server.authentication.service_accounts import AUDIENCES, Lookup
from sully.server.authentication.tokens import Bound, Claims
from sully.server.registry.bodies.body import Body
from sully.server.registry.bodies.decoding import Decoded, decode_part
from sully.server.registry.bodies.kinds import check_part_kind
from sully.server.registry.metadata import check_namespace
from sully.server.registry.options import check_write_options
from sully.server.registry.replies import ConnectReply
from sully.server.registry.writes import ObjectWriter
from sully.server.requests import Request

GROUP, KIND = "authentication.k8s.io", "TokenRequest"
DEFAULT_SECONDS = 3600
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Issuer:
    """Signs tokens for service accounts."""

    def __init__(self, key: SigningKey, writer: ObjectWriter, *, max_seconds: int = 0) -> None:
        self._key = key
        self._writer = writer
        self._lookup: Lookup = writer.lookup
        self._clock = writer.clock
        self._ids = writer.ids
        self._max_seconds = max_seconds

    def issue(self, request: Request, body: Body) -> ConnectReply:
        """Handle one TokenRequest."""
        check_write_options(request, "CreateOptions")
        decoded = self._decoded(request, body)
        obj, target = decoded.obj, request.target
        check_namespace(target, obj)
        self._check_name(obj, target.name)
        account = self._lookup("serviceaccounts", target.namespace, target.name)
        if account is None:
            raise not_found("serviceaccounts", "", target.name)
        self._check_uid(obj, account)
        obj["spec"].setdefault("expirationSeconds", DEFAULT_SECONDS)
        self._track(request, obj)
        problems = list(validate_token_request(obj))
        if problems:
            raise invalid(KIND, GROUP, "", problems)
        reply = self._signed(obj, account)
        reply.warnings[:0] = decoded.warnings
        return reply

    def _decoded(self, request: Request, body: Body) -> Decoded:
        expected = (f"authentication.{KIND}", (f"{GROUP}/v1",))
        check_part_kind(self._writer.objects, body, expected)
        schema = self._writer.objects.scheme.tables.get(AUTHENTICATION, KIND)
        return decode_part(request, schema, body)

    def _check_name(self, obj: Obj, name: str) -> None:
        given = obj["metadata"].get("name", name)
        if given != name:
            text = "must match the service account name if specified"
            raise invalid(KIND, GROUP, name, [Path("metadata.name").invalid(given, text)])

    def _check_uid(self, obj: Obj, account: Obj) -> None:
        """Refuse a request for an account that was deleted and created again."""
        given, uid = obj["metadata"].get("uid"), account["metadata"]["uid"]
        if given and given != uid:
            text = (
                f"the UID in the token request ({given}) does not match the UID of the service"
                f" account ({uid})"
            )
            raise conflict(KIND, GROUP, account["metadata"]["name"], text)

    def _track(self, request: Request, obj: Obj) -> None:
        write = managed.Write(
            manager=request.manager,
            api_version=f"{GROUP}/v1",
            schema=self._writer.objects.scheme.tables.get(AUTHENTICATION, KIND),
            time=format_time(self._clock.now()),
            subresource=request.target.subresource,
        )
        entries = managed.track_update(None, obj, write)
        if entries:
            obj["metadata"]["managedFields"] = entries

    def _signed(self, obj: Obj, account: Obj) -> ConnectReply:
        spec, owner, warnings = obj["spec"], account["metadata"], list[str]()
        bound = self._bound(spec.get("boundObjectRef"), owner)
        seconds = spec["expirationSeconds"]
        if 0 < self._max_seconds < seconds:
            warnings.append(
                f"requested expiration of {seconds} seconds shortened to"
                f" {self._max_seconds} seconds"
            )
            seconds = spec["expirationSeconds"] = self._max_seconds
        spec["audiences"] = list(spec.get("audiences") or AUDIENCES)
        now = self._clock.now()
        claims = Claims(
            namespace=owner["namespace"],
            account=Bound(owner["name"], owner["uid"]),
            audiences=tuple(spec["audiences"]),
            issued=int(now.timestamp()),
            expires=int(now.timestamp()) + seconds,
            id=self._ids.uid(),
            **bound,
        )
        obj["metadata"] |= {
            "name": owner["name"],
            "namespace": owner["namespace"],
            "uid": owner["uid"],
            "creationTimestamp": format_time(now),
        }
        obj["status"] = {
            "token": tokens.sign(claims, self._key),
            "expirationTimestamp": format_time(now + timedelta(seconds=seconds)),
        }
        return ConnectReply({"kind": KIND, "apiVersion": f"{GROUP}/v1", **obj}, 201, warnings)

    def _bound(self, ref: Obj | None, owner: Obj) -> dict[str, Any]:
        if ref is None:
            return {}
        kind, name = ref.get("kind", ""), ref.get("name", "")
        group, _, version = ref.get("apiVersion", "").rpartition("/")
        if group or kind not in _BINDABLE:
            shown = f"{group}/{version}, Kind={kind}"
            raise BadRequest(f"cannot bind token to object of type {shown}")
        namespace = "" if kind == "Node" else owner["namespace"]
        obj = self._lookup(_BINDABLE[kind], namespace, name)
        if obj is None:
            raise not_found(_BINDABLE[kind], "", name)
        if kind == "Pod" and obj["spec"].get("serviceAccountName", "") != owner["name"]:
            raise BadRequest(
                f"cannot bind token for serviceaccount {quote(owner['name'])} to pod running with"
                " different serviceaccount name."
            )
        uid = obj["metadata"]["uid"]
        if ref.get("uid") and ref["uid"] != uid:
            raise conflict(
                kind,
                "",
                name,
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in"
                " record. The object might have been deleted and then recreated",
            )
        return {kind.lower(): Bound(name, uid)} | self._node_of(kind, obj)

    def _node_of(self, kind: str, obj: Obj) -> dict[str, Bound]:
        """Return the node of a pod; a token for a pod contains it."""
        name = obj["spec"].get("nodeName", "") if kind == "Pod" else ""
        node = self._lookup("nodes", "", name) if name else None
        return {"node": Bound(name, node["metadata"]["uid"])} if node else {}
