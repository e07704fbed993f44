"""What every object shares: metadata, conditions, selectors, Status.

Owns: the table of the meta types.
Never: a kind of its own to serve.
Start at: meta.fields.
"""

from collections.abc import Iterable

from sully.api.tables import META, load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the meta package."""
    load(tables, __name__, META, "meta.fields")


def resources() -> Iterable[ResourceType]:
    """Serve nothing: these types only appear inside others."""
    return ()
