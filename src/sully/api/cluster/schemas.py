"""The tables of the group as its strategies need them: to set defaults and to check.

The server keeps all tables in its scheme; a strategy does not see that. These are the same texts.
"""

from functools import lru_cache

from sully.api import meta
from sully.api.tables import load
from sully.machinery.schema import ObjectType, Tables

# Which tables make up a version; shared.fields is part of all of them.
_FILES = {
    "v1": ("clusters.fields",),
    "v1beta2": ("sets.fields",),
    "v1beta1": ("placements.fields", "decisions.fields"),
    "v1alpha1": ("placements.fields", "first.fields", "scores.fields"),
}


def package(version: str) -> str:
    """Return the name of the package that holds a version's types."""
    return f"io.open-cluster-management.cluster.{version}"


def load_tables(tables: Tables) -> None:
    """Load the types of all versions."""
    for version, files in _FILES.items():
        load(tables, "sully.api.cluster", package(version), "shared.fields", *files)


@lru_cache(maxsize=1)
def _tables() -> Tables:
    tables = Tables()
    meta.load_tables(tables)
    load_tables(tables)
    return tables


def schema(version: str, kind: str) -> ObjectType:
    """Return the table of a kind in a version."""
    return _tables().get(package(version), kind)
