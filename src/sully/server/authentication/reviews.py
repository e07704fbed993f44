"""TokenReviews and SelfSubjectReviews.

Both are virtual resources, never stored (registry/virtual.py).
"""

from collections.abc import Callable

from sully.machinery.errors import BadRequest
from sully.machinery.formats.timestamps import format_time
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.server.authentication.service_accounts import AUDIENCES, TokenAuthenticator, TokenError
from sully.server.requests import Request, User

GROUP = "authentication.k8s.io"


def who_am_i(clock: Clock) -> Callable[[Request, Obj], Obj]:
    """Return the handler of SelfSubjectReviews."""

    def handle(request: Request, _obj: Obj) -> Obj:
        # A new object: other fields of the request are ignored.
        return {
            "metadata": {"creationTimestamp": format_time(clock.now())},
            "status": {"userInfo": user_info(request.user)},
        }

    return handle


def review_tokens(accounts: TokenAuthenticator) -> Callable[[Request, Obj], Obj]:
    """Return the handler of TokenReviews."""

    def handle(_request: Request, obj: Obj) -> Obj:
        spec = obj["spec"]
        if not spec.get("token"):
            raise BadRequest("token is required for TokenReview in authentication")
        try:
            accepted = accounts.check(spec["token"], spec.get("audiences") or AUDIENCES)
        except TokenError as error:
            return {**obj, "status": {"user": {}, "error": str(error)}}
        return {
            **obj,
            "status": {
                "authenticated": True,
                "user": user_info(accepted.user),
                "audiences": list(accepted.audiences),
            },
        }

    return handle


def user_info(user: User) -> Obj:
    """Return the UserInfo of a user."""
    info: Obj = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in sorted(user.extra.items())}
    return info
