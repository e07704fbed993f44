"""The environment of expressions over the details that drivers publish with a taint.

An expression sees one variable, `data`: JSON of unknown shape, null where the driver gave none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sully.machinery.cel import types
from sully.machinery.cel.environment import Environment
from sully.machinery.cel.library.catalogue import kubernetes_library

VARIABLE: Final = "data"
LIMIT: Final = 100_000
"""Details have at most 10 KiB."""


@lru_cache(maxsize=1)
def taint_data_environment() -> Environment:
    """Return the environment of expressions over `data`."""
    return Environment(
        library=kubernetes_library(),
        variables={VARIABLE: types.DYN},
        results=(types.BOOL, types.DYN),
        limit=LIMIT,
    )
