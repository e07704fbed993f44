"""What the tests of this folder share: a world of objects to check tokens against, and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jwt.utils import base64url_decode, base64url_encode

from sully.server.authentication.keys import SigningKey
from sully.server.authentication.service_accounts import CACHE_SIZE, TokenAuthenticator
from sully.server.authentication.tokens import ISSUER, Bound, Claims
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.requests import User
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
KEY = SigningKey.new()


def encode(data: bytes) -> str:
    """Write bytes as tokens do."""
    return base64url_encode(data).decode()


def decode(text: str) -> bytes:
    """Read a part of a token."""
    return base64url_decode(text)


@dataclass
class World:
    """Objects by resource, namespace and name, and a clock."""

    clock: FakeClock = field(default_factory=FakeClock)
    objects: dict[tuple[str, str, str], Obj] = field(default_factory=dict)

    def put(self, resource: str, namespace: str, name: str, uid: str, **metadata: Any) -> None:
        self.objects[resource, namespace, name] = {"metadata": {"uid": uid, **metadata}}

    def lookup(self, resource: str, namespace: str, name: str) -> Obj | None:
        return self.objects.get((resource, namespace, name))

    def accounts(
        self, key: SigningKey = KEY, *, cache_size: int = CACHE_SIZE
    ) -> TokenAuthenticator:
        return TokenAuthenticator(key, self.lookup, self.clock, cache_size=cache_size)

    def claims(self, **changed: Any) -> Claims:
        now = int(self.clock.now().timestamp())
        usual: Obj = {
            "namespace": "team",
            "account": Bound("robot", "uid-1"),
            "audiences": (ISSUER,),
            "issued": now,
            "expires": now + 3600,
            "id": "token-1",
        }
        return Claims(**(usual | changed))


def world() -> World:
    """Return a world with one account, and one of each thing a token can be bound to."""
    made = World()
    made.put("serviceaccounts", "team", "robot", "uid-1")
    made.put("pods", "team", "web", "uid-pod")
    made.put("secrets", "team", "key", "uid-secret")
    made.put("nodes", "", "n1", "uid-node")
    return made


class Allow:
    """Allows the given requests, and records all."""

    def __init__(self, *allowed: tuple[str, str, str]) -> None:
        self._allowed = allowed
        self.asked: list[Attributes] = []

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        self.asked.append(attributes)
        resource = attributes.resource
        if attributes.subresource:
            resource += f"/{attributes.subresource}"
        return Decision((attributes.verb, resource, attributes.name) in self._allowed)
