"""What a token is worth: signature, time, audience, account, and what it is bound to."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from server.authentication.tables import KEY, World, decode, encode, world
from sully.server.authentication.keys import KeyFileError, SigningKey
from sully.server.authentication.service_accounts import TokenError, split_account
from sully.server.authentication.tokens import ISSUER, Bound, read, sign

INVALID = "invalid bearer token"
POD, SECRET, NODE = Bound("web", "uid-pod"), Bound("key", "uid-secret"), Bound("n1", "uid-node")


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    head, payload, _ = token.split(".")
    return json.loads(decode(head)), json.loads(decode(payload))


def test_a_token_has_the_claims_of_kubernetes() -> None:
    there = world()
    head, payload = parts(sign(there.claims(pod=POD, node=NODE), KEY))

    now = int(there.clock.now().timestamp())
    assert head == {"alg": "ES256", "kid": KEY.public.id}
    assert payload == {
        "aud": [ISSUER],
        "exp": now + 3600,
        "iat": now,
        "iss": ISSUER,
        "jti": "token-1",
        "kubernetes.io": {
            "namespace": "team",
            "node": {"name": "n1", "uid": "uid-node"},
            "pod": {"name": "web", "uid": "uid-pod"},
            "serviceaccount": {"name": "robot", "uid": "uid-1"},
        },
        "nbf": now,
        "sub": "system:serviceaccount:team:robot",
    }


@pytest.mark.parametrize("bound", [{}, {"pod": POD}, {"secret": SECRET}, {"node": NODE}])
def test_what_is_signed_is_read(bound: dict[str, Bound]) -> None:
    claims = world().claims(**bound)

    assert read(sign(claims, KEY), KEY) == claims


def test_a_good_token_names_its_account() -> None:
    there = world()
    accepted = there.accounts().check(sign(there.claims(pod=POD, node=NODE), KEY))

    user = accepted.user
    assert accepted.audiences == (ISSUER,)
    assert (user.name, user.uid) == ("system:serviceaccount:team:robot", "uid-1")
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:team",
        "system:authenticated",
    )
    assert user.extra == {
        "authentication.kubernetes.io/credential-id": ("JTI=token-1",),
        "authentication.kubernetes.io/node-name": ("n1",),
        "authentication.kubernetes.io/node-uid": ("uid-node",),
        "authentication.kubernetes.io/pod-name": ("web",),
        "authentication.kubernetes.io/pod-uid": ("uid-pod",),
    }


def _other_spelling(token: str) -> str:
    # 64 bytes leave four bits of the last character unused; setting one changes no byte.
    last = token[-1]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + letters[letters.index(last) + 1]


def _unsigned(token: str) -> str:
    _, payload, _ = token.split(".")
    return f"{encode(json.dumps({'alg': 'none'}).encode())}.{payload}."


def _with_secret_of_public_key(token: str) -> str:
    # The old trick: a keyed hash whose secret is what everybody knows.
    _, payload, signature = token.split(".")
    head = encode(json.dumps({"alg": "HS256", "kid": KEY.public.id}).encode())
    return f"{head}.{payload}.{signature}"


def _other_account(token: str) -> str:
    head, payload, signature = token.split(".")
    reported = decode(payload).replace(b"robot", b"admin")
    return f"{head}.{encode(reported)}.{signature}"


FORGERIES: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "a word": lambda _: "hello",
    "three empty parts": lambda _: "..",
    "two parts": lambda token: token.rpartition(".")[0],
    "four parts": lambda token: f"{token}.x",
    "no signature": lambda token: token.rpartition(".")[0] + ".",
    "short signature": lambda token: token[:-4],
    "signature of zeros": lambda token: token.rpartition(".")[0] + "." + encode(bytes(64)),
    "another spelling": _other_spelling,
    "algorithm none": _unsigned,
    "another algorithm": _with_secret_of_public_key,
    "another account": _other_account,
    "padding": lambda token: f"{token}=",
    "full padding": lambda token: f"{token}==",
    "padding in the middle": lambda token: token.replace(".", "=.", 1),
    "line break": lambda token: f"{token}\n",
    "letters beyond": lambda token: token[:-1] + "é",
    "half characters": lambda token: token[:-1] + "\udc80",
    "very long": lambda token: token + "A" * 1_000_000,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_we_did_not_sign_is_worth_nothing(name: str) -> None:
    there = world()
    token = sign(there.claims(), KEY)
    assert there.accounts().check(token)

    with pytest.raises(TokenError, match=f"^{INVALID}$"):
        there.accounts().check(FORGERIES[name](token))


# name → what a token reports that our key signed, though we never write such a token
STRANGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another issuer": lambda reported: reported.update(iss="https://elsewhere"),
    **{
        f"no {name}": methodcaller("pop", name)
        for name in ("aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub")
    },
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE.keys())
def test_a_token_has_all_claims(change: Callable[[dict[str, Any]], Any]) -> None:
    there = world()
    _, payload = parts(sign(there.claims(), KEY))
    change(payload)

    with pytest.raises(TokenError, match=f"^{INVALID}$"):
        there.accounts().check(KEY.sign(payload))


def test_what_another_key_signed_is_worth_nothing() -> None:
    there = world()

    with pytest.raises(TokenError, match=f"^{INVALID}$"):
        there.accounts().check(sign(there.claims(), SigningKey.new()))


def _later(seconds: float) -> Callable[[World], None]:
    return lambda there: there.clock.advance(seconds)


def _without(*key: str) -> Callable[[World], object]:
    return lambda there: there.objects.pop((key[0], key[1], key[2]))


def _again(resource: str, namespace: str, name: str) -> Callable[[World], None]:
    return lambda there: there.put(resource, namespace, name, "uid-new")


def _ending(resource: str, namespace: str, name: str, uid: str) -> Callable[[World], None]:
    def end(there: World) -> None:
        stamp = there.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        there.put(resource, namespace, name, uid, deletionTimestamp=stamp)
        there.clock.advance(61)

    return end


INVALIDATED = "service account token has been invalidated"
# name → (what the token is bound to, what happens, the result of a review)
ENDINGS: dict[str, tuple[dict[str, Bound], Callable[[World], object], str]] = {
    "expired": ({}, _later(3600), "service account token has expired"),
    "long expired": ({}, _later(1e6), "service account token has expired"),
    "clock set back": ({}, _later(-61), "service account token is not valid yet"),
    "account gone": (
        {},
        _without("serviceaccounts", "team", "robot"),
        'serviceaccounts "robot" not found',
    ),
    "account made again": (
        {},
        _again("serviceaccounts", "team", "robot"),
        "service account UID (uid-new) does not match claim (uid-1)",
    ),
    "account ending": (
        {},
        _ending("serviceaccounts", "team", "robot", "uid-1"),
        "service account team/robot has been deleted",
    ),
    "pod gone": ({"pod": POD}, _without("pods", "team", "web"), INVALIDATED),
    "pod ending": ({"pod": POD}, _ending("pods", "team", "web", "uid-pod"), INVALIDATED),
    "pod made again": (
        {"pod": POD},
        _again("pods", "team", "web"),
        "pod UID (uid-new) does not match service account pod ref claim (uid-pod)",
    ),
    "secret gone": ({"secret": SECRET}, _without("secrets", "team", "key"), INVALIDATED),
    "node gone": ({"node": NODE}, _without("nodes", "", "n1"), INVALIDATED),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_token_ends(name: str) -> None:
    bound, happens, reported = ENDINGS[name]
    there = world()
    accounts = there.accounts()
    token = sign(there.claims(**bound), KEY)
    assert accounts.check(token).user.name == "system:serviceaccount:team:robot"

    happens(there)

    # The same checker, which has seen the token when it was good.
    with pytest.raises(TokenError) as refused:
        accounts.check(token)
    assert str(refused.value) == f"[{INVALID}, {reported}]"


CONTINUES: dict[str, tuple[dict[str, Bound], Callable[[World], object]]] = {
    "to its last second": ({}, _later(3599)),
    "when the clock goes back a little": ({}, _later(-30)),
    "when the node of its pod is gone": ({"pod": POD, "node": NODE}, _without("nodes", "", "n1")),
    "when another pod is gone": ({}, _without("pods", "team", "web")),
}


@pytest.mark.parametrize("name", CONTINUES)
def test_a_token_continues(name: str) -> None:
    bound, happens = CONTINUES[name]
    there = world()
    token = sign(there.claims(**bound), KEY)

    happens(there)

    assert there.accounts().check(token)


def test_a_pod_that_ends_in_order_may_still_talk() -> None:
    there = world()
    stamp = there.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    there.put("pods", "team", "web", "uid-pod", deletionTimestamp=stamp)
    there.clock.advance(59)

    assert there.accounts().check(sign(there.claims(pod=POD), KEY))


# name → (whom the token is for, who asks, the common ones; none: refused)
AUDIENCES = {
    "the server": ((ISSUER,), (ISSUER,), (ISSUER,)),
    "another user": (("vault",), (ISSUER,), ()),
    "asked by another user": ((ISSUER,), ("vault",), ()),
    "one of two": (("vault", ISSUER), (ISSUER,), (ISSUER,)),
    "two of three": (("a", "b", "c"), ("c", "a"), ("a", "c")),
    "for nobody": ((), (ISSUER,), ()),
}


@pytest.mark.parametrize("name", AUDIENCES)
def test_whom_a_token_is_for(name: str) -> None:
    meant, asked, common = AUDIENCES[name]
    there = world()
    token = sign(there.claims(audiences=meant), KEY)

    if common:
        assert there.accounts().check(token, asked).audiences == common
        return
    with pytest.raises(TokenError) as refused:
        there.accounts().check(token, asked)
    shown = [f"[{' '.join(json.dumps(name) for name in names)}]" for names in (meant, asked)]
    text = f"token audiences {shown[0]} is invalid for the target audiences {shown[1]}"
    assert str(refused.value) == f"[{INVALID}, {text}]"


def test_signatures_are_checked_once_and_few_are_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there, checked = world(), list[str]()
    key = SigningKey.new()
    verify = key.verify

    def counted(token: str, *args: Any, **more: Any) -> Any:
        checked.append(token)
        return verify(token, *args, **more)

    monkeypatch.setattr(key, "verify", counted)
    accounts = there.accounts(key, cache_size=2)
    one, two, three = (sign(there.claims(id=name), key) for name in "abc")

    for token in (one, one, two, one, two):
        accounts.check(token)
    assert len(checked) == 2
    accounts.check(three)
    accounts.check(one)
    assert len(checked) == 4


def test_the_key_stays_and_is_private(tmp_path: Path) -> None:
    first = SigningKey.open(tmp_path)

    assert SigningKey.open(tmp_path).public.id == first.public.id
    assert stat.S_IMODE((tmp_path / "sa.key").stat().st_mode) == 0o600


def test_the_public_form_verifies_tokens_elsewhere() -> None:
    # One key in 128 has a coordinate that begins with a zero.
    for key in [SigningKey.new() for _ in range(200)]:
        token = sign(world().claims(), key)

        published = jwt.PyJWK(key.public.jwk)

        header = jwt.get_unverified_header(token)
        assert header["kid"] == key.public.id
        options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
        assert jwt.decode(token, published, ["ES256"], options, audience=ISSUER)["iss"] == ISSUER


def test_a_key_file_with_something_else_is_reported(tmp_path: Path) -> None:
    (tmp_path / "sa.key").write_bytes(b"hello")
    with pytest.raises(KeyFileError, match=r"sa\.key has no readable key"):
        SigningKey.open(tmp_path)

    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (tmp_path / "sa.key").write_bytes(
        other.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    with pytest.raises(KeyFileError, match=r"cannot sign ES256 tokens"):
        SigningKey.open(tmp_path)


@pytest.mark.parametrize(
    ("user", "result"),
    [
        ("system:serviceaccount:team:robot", ("team", "robot")),
        ("system:serviceaccount:team", None),
        ("system:serviceaccount:team:", None),
        ("system:serviceaccount::robot", None),
        ("system:serviceaccount:a:b:c", None),
        ("team:robot", None),
        ("", None),
    ],
)
def test_accounts_by_user_name(user: str, result: tuple[str, str] | None) -> None:
    assert split_account(user) == result
