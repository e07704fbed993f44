"""Types of the core package outside of a scheme, for error texts that quote Go's structs."""

from functools import cache

from sully.machinery.schema import ObjectType, Tables


@cache
def core_type(name: str) -> ObjectType:
    """Return a type with everything it refers to; rarely needed."""
    # Late: the group's own package imports the modules that need this.
    from sully.api.core import CORE
    from sully.api.core import load_tables as load_core
    from sully.api.meta import load_tables as load_meta

    tables = Tables()
    load_meta(tables)
    load_core(tables)
    return tables.get(CORE, name)
