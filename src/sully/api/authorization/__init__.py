"""The authorization group: reviews of who may do what.

Owns: the kinds of reviews, none of which is stored, and their validation.
Never: authorizes (server/authorization does).
Start at: reviews.py.
"""

from collections.abc import Iterable

from sully.api.authorization.reviews import AUTHORIZATION, REVIEWS
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, AUTHORIZATION, "authorization.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return REVIEWS
