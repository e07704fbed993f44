"""Where an etcd is, and under which keys it holds a store.

    etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/team-a
           └─ members, any of them will do ────────┘└ prefix, `/sully` unless given

Under the prefix are `objects/<resource>/<namespace>/<name>`, what processes agree on in `shared/`,
and `tip`. Every transaction of every process writes `tip` too, so its revision is that of the
newest write, deletions included, however busy other users of the same etcd are.
"""

from __future__ import annotations

from pathlib import Path
from sys import intern

import msgspec

from sully.store.base import Store, StoreKey
from sully.store.errors import OpenError

SCHEME = "etcd://"
DEFAULT_PREFIX = "/sully"
DEFAULT_PORT = "2379"


class Tls(msgspec.Struct, frozen=True):
    """The client certificate and the CA, as files."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Reject a certificate without its key, and the reverse."""
        if (self.certificate is None) != (self.key is None):
            raise ValueError("--etcd-certfile and --etcd-keyfile only work together")
        if self.certificate is not None and self.ca is None:
            raise ValueError("--etcd-certfile requires --etcd-cafile (TLS)")


class Login(msgspec.Struct, frozen=True):
    """The user and password for etcd; none without a name."""

    user: str = ""
    password: Path | None = None
    """A file: flags are visible to all users of the machine."""

    def check(self) -> None:
        """Reject a name without a password, and the reverse."""
        if bool(self.user) != (self.password is not None):
            raise ValueError("--etcd-username and --etcd-password-file only work together")


class Address(msgspec.Struct, frozen=True):
    """A cluster, and the prefix of a store in it."""

    endpoints: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    tls: Tls = msgspec.field(default_factory=Tls)
    login: Login = msgspec.field(default_factory=Login)

    def __str__(self) -> str:
        """Return the address as a URL."""
        return f"{SCHEME}{','.join(self.endpoints)}{self.prefix}"


def parse_address(text: str, tls: Tls | None = None, login: Login | None = None) -> Address:
    """Read `etcd://a,b,c/prefix`; raises `ValueError` with what is wrong."""
    hosts, slash, path = text.removeprefix(SCHEME).partition("/")
    endpoints = tuple(_endpoint(host) for host in hosts.split(",") if host)
    if not text.startswith(SCHEME) or not endpoints:
        raise ValueError(f'invalid store "{text}" (for example etcd://127.0.0.1:2379)')
    prefix = f"/{path.strip('/')}" if slash and path.strip("/") else DEFAULT_PREFIX
    tls, login = tls or Tls(), login or Login()
    tls.check()
    login.check()
    return Address(endpoints, prefix, tls, login)


def _endpoint(host: str) -> str:
    bare = host.rpartition("]")[2] if host.startswith("[") else host
    port = bare.rpartition(":")[2] if ":" in bare else ""
    if ":" in bare and not port.isdigit():
        raise ValueError(f'invalid etcd member "{host}" (HOST:PORT)')
    return host if port else f"{host}:{DEFAULT_PORT}"


class Keys:
    """Translates between keys of the store and keys of etcd."""

    def __init__(self, prefix: str) -> None:
        self.start = f"{prefix}/".encode()
        self.end = f"{prefix}0".encode()  # "0" follows "/": all that begins with `start`
        self.tip = f"{prefix}/tip".encode()
        self.shared = f"{prefix}/shared/".encode()
        self.objects = f"{prefix}/objects/".encode()
        self.objects_end = f"{prefix}/objects0".encode()

    def encode(self, key: StoreKey) -> bytes:
        """Return where etcd has an object."""
        path = f"{key.resource}/{_quote(key.namespace)}/{_quote(key.name)}"
        return self.objects + path.encode()

    def decode(self, path: bytes) -> StoreKey | None:
        """Return the key of an object; `None` for other keys."""
        if not path.startswith(self.objects):
            return None
        # From the right: a resource has a slash in its name, the others have none.
        parts = path.removeprefix(self.objects).decode(errors="replace").rsplit("/", 2)
        if len(parts) != 3:
            return None
        return StoreKey(intern(parts[0]), intern(_unquote(parts[1])), _unquote(parts[2]))


def _quote(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F")


def _unquote(text: str) -> str:
    return text.replace("%2F", "/").replace("%25", "%") if "%" in text else text


async def open_etcd(address: Address) -> Store:
    """Open a store in etcd, or raise an error that names the packages that it needs."""
    try:
        # Imported here: it needs packages that other stores do not.
        from sully.store.etcd.store import EtcdStore
    except ImportError as error:
        raise OpenError(
            f"{error}: a store in etcd needs more packages; in the checkout:"
            " .venv/bin/pip install --editable '.[etcd]'"
        ) from error
    return await EtcdStore.open(address)
