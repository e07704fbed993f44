"""Reads the field tables of the groups (`*.fields`)."""

from functools import cache
from importlib import resources

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
    return read_table(resources.files(module).joinpath(file).read_text(encoding="utf-8"))
