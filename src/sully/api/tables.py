"""Reads the field tables of the groups (`*.fields`)."""

from importlib import resources

from sully.machinery.schema import Tables

META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def load(tables: Tables, module: str, package: str, *files: str) -> None:
    """Load tables of one group folder into one package of types."""
    folder = resources.files(module)
    alias = module.rsplit(".", 1)[-1]
    for file in files:
        tables.load(package, alias, folder.joinpath(file).read_text(encoding="utf-8"))
