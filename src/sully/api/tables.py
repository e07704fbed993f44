"""Reads the field tables of the groups (`*.fields`)."""

import pkgutil
from functools import cache

from sully.machinery.schema import Table, Tables, read_table

META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def load(tables: Tables, module: str, package: str, *files: str) -> None:
    """Load tables of one group folder into one package of types."""
    alias = module.rsplit(".", 1)[-1]
    for file in files:
        tables.add(package, alias, _table(module, file))


@cache
def _table(module: str, file: str) -> Table:
    """Return a table, which is read once: commands such as `sully plan` build several schemes."""
    data = pkgutil.get_data(module, file)
    assert data is not None, "a package of files"
    return read_table(data.decode())
