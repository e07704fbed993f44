"""The schemas of our kinds in custom resource definitions.

What our own server checks when it validates is in limits.py, as far as a schema can express it.
"""

from __future__ import annotations

from typing import Any

from sully.install.limits import GATED, LIMITS
from sully.machinery.customresources.documents import SchemaWriter
from sully.machinery.gates import Gates
from sully.machinery.schema import ObjectType

Obj = dict[str, Any]


def schema_of(kind: ObjectType, gates: Gates) -> Obj:
    """Return the schema of a whole kind, for controllers with these feature gates."""
    writer = SchemaWriter(LIMITS, lambda name: name not in GATED or gates[GATED[name]])
    return writer.schema_of(kind)
