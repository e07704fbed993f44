"""The authentication group: tokens of service accounts, reviews of tokens, and who the caller is.

Owns: the kinds TokenRequest, TokenReview and SelfSubjectReview, and what makes a request valid.
Never: signs or checks a token; server/authentication/ does.
Start at: validate_token_request below.
"""

from collections.abc import Iterable, Iterator

from sully.api.tables import load
from sully.machinery.fields import FieldError, Path
from sully.machinery.schema import Tables
from sully.machinery.strategy import Obj, ResourceType, Strategy, Version

AUTHENTICATION = "io.k8s.api.authentication.v1"
GROUP = "authentication.k8s.io"
MIN_SECONDS = 600
MAX_SECONDS = 1 << 32

TOKEN_REVIEWS = ResourceType(
    group=GROUP,
    kind="TokenReview",
    plural="tokenreviews",
    singular="tokenreview",
    namespaced=False,
    versions=(Version("v1", AUTHENTICATION),),
    strategy=Strategy(),
    virtual=True,
)
SELF_SUBJECT_REVIEWS = ResourceType(
    group=GROUP,
    kind="SelfSubjectReview",
    plural="selfsubjectreviews",
    singular="selfsubjectreview",
    namespaced=False,
    versions=(Version("v1", AUTHENTICATION),),
    strategy=Strategy(),
    virtual=True,
)


def validate_token_request(request: Obj) -> Iterator[FieldError]:
    """Yield what is wrong with a request for a token, defaults already filled in."""
    at = Path("spec").child("expirationSeconds")
    seconds = request["spec"]["expirationSeconds"]
    if seconds < MIN_SECONDS:
        yield at.invalid(seconds, "may not specify a duration less than 10 minutes")
    if seconds > MAX_SECONDS:
        yield at.invalid(seconds, "may not specify a duration larger than 2^32 seconds")


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, AUTHENTICATION, "authentication.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return TOKEN_REVIEWS, SELF_SUBJECT_REVIEWS
