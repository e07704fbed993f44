"""ConfigMaps, Secrets and ServiceAccounts: what pods are configured with.

None of them does anything by itself; the rules are about keys, sizes and what may not change.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sully.api.core.checks import formatted, same, unchanged
from sully.api.core.columns import AGE, NAME, plain
from sully.api.core.namespaces import unsupported_label
from sully.machinery.fields import FieldError, Path
from sully.machinery.patch.merge_patch import go_kind
from sully.machinery.serialization.codec import BodyError, parse_json
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

MAX_BYTES = 1024 * 1024
_V1 = Version("v1", "io.k8s.api.core.v1")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',"
    "  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_FROZEN = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_GO_OBJECT = "map[string]interface {}"


def key_problems(key: str) -> list[str]:
    """Check a key of a ConfigMap or Secret: it becomes a file name."""
    problems = []
    if len(key.encode()) > 253:
        problems.append("must be no more than 253 characters")
    if not _KEY.fullmatch(key):
        problems.append(_KEY_TEXT)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def _frozen(obj: Obj, old: Obj, *fields: str) -> Iterator[FieldError]:
    """Check that nothing of an object that was declared immutable changes."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield Path("immutable").forbidden(_FROZEN)
    for field in fields:
        if not same(obj.get(field), old.get(field)):
            yield Path(field).forbidden(_FROZEN)


def _decoded_size(values: Mapping[str, str]) -> int:
    return sum(len(base64.b64decode(value)) for value in values.values())


class ConfigMapStrategy(Strategy, frozen=True):
    """Writes to config maps."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check keys and the size of all values together."""
        text, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for key in sorted(text):
            yield from formatted(key, key_problems, Path("data").key(key))
            if key in binary:
                yield Path("data").key(key).invalid(key, "duplicate of key present in binaryData")
        for key in sorted(binary):
            yield from formatted(key, key_problems, Path("binaryData").key(key))
        size = sum(len(value.encode()) for value in text.values()) + _decoded_size(binary)
        if size > MAX_BYTES:
            # This is the path of the whole object.
            yield Path("[]").too_long(MAX_BYTES)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new content, and that immutable content stays."""
        yield from _frozen(obj, old, "data", "binaryData")
        yield from self.validate_create(obj, ctx)


class SecretStrategy(Strategy, frozen=True):
    """Writes to secrets."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Move plain text into `data`, which is all that is kept, and fill in the type."""
        if not obj.get("type"):
            obj["type"] = "Opaque"
        plain_text = obj.pop("stringData", None) or {}
        if plain_text:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain_text.items()}
            obj["data"] = (obj.get("data") or {}) | encoded

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check keys, size, and what the type requires."""
        data, at = obj.get("data") or {}, Path("data")
        for key in sorted(data):
            yield from formatted(key, key_problems, at.key(key))
        if _decoded_size(data) > MAX_BYTES:
            yield at.too_long(MAX_BYTES)
        yield from _typed_content(obj, data)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new content, and that type and immutable content stay."""
        yield from unchanged(obj.get("type"), old.get("type"), Path("type"))
        yield from _frozen(obj, old, "data")
        yield from self.validate_create(obj, ctx)


# Keys that a secret of a type must have.
_REQUIRED_KEYS = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _typed_content(obj: Obj, data: Mapping[str, str]) -> Iterator[FieldError]:
    kind, at = obj.get("type", ""), Path("data")
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not (obj["metadata"].get("annotations") or {}).get(name):
            yield Path("metadata.annotations").key(name).required()
    elif kind in _DOCKER:
        yield from _docker_config(data, _DOCKER[kind], at)
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield at.key("username").required()
        yield at.key("password").required()
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield at.key(key).required()


def _docker_config(data: Mapping[str, str], key: str, at: Path) -> Iterator[FieldError]:
    if key not in data:
        yield at.key(key).required()
        return
    try:
        content, _ = parse_json(base64.b64decode(data[key]))
    except BodyError as error:
        yield at.key(key).invalid(_REDACTED, str(error))
        return
    if content is not None and not isinstance(content, dict):
        text = f"json: cannot unmarshal {go_kind(content)} into Go value of type {_GO_OBJECT}"
        yield at.key(key).invalid(_REDACTED, text)


class ServiceAccountStrategy(Strategy, frozen=True):
    """Writes to service accounts."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Keep only the names of secrets: they are always in the same namespace."""
        if obj.get("secrets"):
            names = [secret.get("name") for secret in obj["secrets"]]
            obj["secrets"] = [{"name": name} if name else {} for name in names]

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep only the names of secrets."""
        self.prepare_create(obj, ctx)


def _count(*fields: str) -> Any:
    return plain(lambda obj: sum(len(obj.get(field) or ()) for field in fields))


def _type(obj: Obj) -> str:
    return str(obj.get("type", ""))


CONFIG_MAPS = ResourceType(
    group="",
    kind="ConfigMap",
    plural="configmaps",
    singular="configmap",
    namespaced=True,
    versions=(_V1,),
    strategy=ConfigMapStrategy(),
    short_names=("cm",),
    columns=(
        NAME,
        Column("Data", _count("data", "binaryData"), description="Number of entries."),
        AGE,
    ),
)

SECRETS = ResourceType(
    group="",
    kind="Secret",
    plural="secrets",
    singular="secret",
    namespaced=True,
    versions=(_V1,),
    strategy=SecretStrategy(),
    columns=(
        NAME,
        Column("Type", plain(_type), description="What the secret is for."),
        Column("Data", _count("data"), description="Number of entries."),
        AGE,
    ),
    selectable={"type": _type},
    unknown_label=unsupported_label,
)

SERVICE_ACCOUNTS = ResourceType(
    group="",
    kind="ServiceAccount",
    plural="serviceaccounts",
    singular="serviceaccount",
    namespaced=True,
    versions=(Version("v1", _V1.package, delete_returns_object=True),),
    strategy=ServiceAccountStrategy(),
    connect=("token",),
    short_names=("sa",),
    columns=(
        NAME,
        AGE,
    ),
)
