"""Continue tokens of lists: the last object and the revision.

They look like those of Kubernetes, and invalid ones are rejected with the same texts.
"""

import posixpath
import string
from base64 import urlsafe_b64decode, urlsafe_b64encode

from sully.machinery.errors import BadRequest
from sully.machinery.serialization.codec import BodyError, parse_json, to_json

_VERSION = "meta.k8s.io/v1"
_ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")
# The list continues after the last object; no name has this character.
_BEHIND = "\0"


def write_token(namespace: str, last: tuple[str, str], revision: int) -> str:
    """Return the token that continues a list after an object.

    Within a namespace the token has the name alone, so it reveals nothing about other namespaces.
    """
    start = f"{'' if namespace else last[0]}/{last[1]}{_BEHIND}"
    data = to_json({"v": _VERSION, "rv": revision, "start": start})
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def read_token(namespace: str, token: str) -> tuple[tuple[str, str], int | None]:
    """Return after which object to continue, and the revision; None is the newest one."""
    version, revision, start = _fields(token)
    if version != _VERSION:
        raise _invalid(f": server does not recognize this encoded version {version}")
    if not revision:
        raise _invalid(f": incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f": encoded start key empty (version {_VERSION})")
    absolute = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(absolute) != absolute:
        raise _invalid(f": {start}")
    within, _, name = absolute[1:].rpartition("/")
    return (namespace or within, name.removesuffix(_BEHIND)), revision if revision > 0 else None


def _fields(token: str) -> tuple[str, int, str]:
    wrong = next((at for at, char in enumerate(token) if char not in _ALPHABET), None)
    if wrong is None and len(token) % 4 == 1:
        wrong = len(token) - 1
    if wrong is not None:
        raise _invalid(f": illegal base64 data at input byte {wrong}")
    try:
        value, _ = parse_json(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except BodyError as error:
        raise _invalid(f": {error}") from None
    if not isinstance(value, dict):
        raise _invalid(
            f": json: cannot unmarshal {_kind(value)} into Go value of type continueToken"
        )
    version, revision, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
    for name, field_value, kind, go in (
        ("v", version, str, "string"),
        ("rv", revision, int, "int64"),
        ("start", start, str, "string"),
    ):
        if type(field_value) is not kind:
            where = f"Go struct field continueToken.{name} of type {go}"
            raise _invalid(f": json: cannot unmarshal {_kind(field_value)} into {where}")
    return version, revision, start


def _kind(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return f"number {value}"


def _invalid(reason: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid{reason}")
