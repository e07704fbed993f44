"""Reads the tables of protobuf field numbers that lie beside the field tables."""

from importlib import resources


def numbers_text(package: str) -> str:
    """Return the table of a package, `core/v1.numbers` for the core group's; empty for none."""
    *_, group, version = package.split(".")
    table = resources.files(__package__).joinpath(group, f"{version}.numbers")
    return table.read_text(encoding="utf-8") if table.is_file() else ""
