"""The batch group: Jobs, which run pods until a number of them have succeeded.

Owns: the kind Job: tables, defaults, validation, rules on write, columns.
Never: creates pods; controllers do.
Start at: jobs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    # Late imports, here and below: importing indexes.py need not load all the rules about Jobs.
    from sully.api.batch.jobs import BATCH
    from sully.api.tables import load

    load(tables, __name__, BATCH, "jobs.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    from sully.api.batch.jobs import JOBS

    return (JOBS,)
