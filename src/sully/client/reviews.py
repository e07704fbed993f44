"""Reviews: who a user is to an API server, and what it may do there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sully.client.transport import Kind, Transport
from sully.machinery.meta import ObjectMeta, Wire


class UserInfo(Wire, frozen=True, kw_only=True):
    """A user."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class TokenReviewStatus(Wire, frozen=True, kw_only=True):
    """Whether a token is valid, and whose it is."""

    authenticated: bool = False
    user: UserInfo = UserInfo()


class TokenReview(Wire, frozen=True, kw_only=True):
    """The answer about a token."""

    metadata: ObjectMeta = ObjectMeta()
    status: TokenReviewStatus = TokenReviewStatus()


class SelfSubjectReviewStatus(Wire, frozen=True, kw_only=True):
    """Who the caller is."""

    user_info: UserInfo = UserInfo()


class SelfSubjectReview(Wire, frozen=True, kw_only=True):
    """The answer about the caller."""

    metadata: ObjectMeta = ObjectMeta()
    status: SelfSubjectReviewStatus = SelfSubjectReviewStatus()


class AccessReviewStatus(Wire, frozen=True, kw_only=True):
    """Whether something may be done."""

    allowed: bool = False


class AccessReview(Wire, frozen=True, kw_only=True):
    """The answer about a permission, of the caller or of another user."""

    metadata: ObjectMeta = ObjectMeta()
    status: AccessReviewStatus = AccessReviewStatus()


_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
TOKEN_REVIEWS: Kind[TokenReview] = Kind(
    _AUTHENTICATION, "v1", "tokenreviews", "TokenReview", TokenReview, namespaced=False
)
SELF_REVIEWS: Kind[SelfSubjectReview] = Kind(
    _AUTHENTICATION,
    "v1",
    "selfsubjectreviews",
    "SelfSubjectReview",
    SelfSubjectReview,
    namespaced=False,
)
ACCESS_REVIEWS: Kind[AccessReview] = Kind(
    _AUTHORIZATION,
    "v1",
    "subjectaccessreviews",
    "SubjectAccessReview",
    AccessReview,
    namespaced=False,
)
SELF_ACCESS_REVIEWS: Kind[AccessReview] = Kind(
    _AUTHORIZATION,
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    AccessReview,
    namespaced=False,
)


async def user_of_token(transport: Transport, token: str) -> UserInfo | None:
    """Return whose token it is; None if it is not valid."""
    review = await transport.create(TOKEN_REVIEWS, {"spec": {"token": token}})
    return review.status.user if review.status.authenticated else None


async def own_user(transport: Transport) -> UserInfo:
    """Return who the caller is."""
    return (await transport.create(SELF_REVIEWS, {"metadata": {}})).status.user_info


async def may(
    transport: Transport, attributes: Mapping[str, str], user: UserInfo | None = None
) -> bool:
    """Report whether a user, or the caller, may do something; a path is for no resource."""
    of = "nonResourceAttributes" if "path" in attributes else "resourceAttributes"
    spec: dict[str, Any] = {of: dict(attributes)}
    if user is None:
        return (await transport.create(SELF_ACCESS_REVIEWS, {"spec": spec})).status.allowed
    known = {"uid": user.uid, "groups": list(user.groups)}
    extra = {"extra": {name: list(values) for name, values in user.extra.items()}}
    spec |= {"user": user.username} | {k: v for k, v in (known | extra).items() if v}
    return (await transport.create(ACCESS_REVIEWS, {"spec": spec})).status.allowed
