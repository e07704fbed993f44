"""The discovery group: EndpointSlices, the addresses of Services.

Owns: the kind EndpointSlice. It is stored; no controller writes the slices of Services.
Never: what clients call discovery, the list of kinds; the server has that.
Start at: slices.py.
"""

from collections.abc import Iterable

from sully.api.discovery.slices import DISCOVERY, ENDPOINT_SLICES
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, DISCOVERY, "discovery.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (ENDPOINT_SLICES,)
