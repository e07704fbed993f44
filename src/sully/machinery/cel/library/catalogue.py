"""The sets of libraries of environments, each built once."""

from __future__ import annotations

from functools import lru_cache

from sully.machinery.cel import regex
from sully.machinery.cel.declarations import Library, dynamic, library, merge
from sully.machinery.cel.library.conversions import conversions
from sully.machinery.cel.library.dates import dates
from sully.machinery.cel.library.kubernetes import normalized_versions, quantities, versions
from sully.machinery.cel.library.lists import (
    inclusion,
    kubernetes_lists,
    list_extensions,
    sets,
)
from sully.machinery.cel.library.named_formats import named_formats
from sully.machinery.cel.library.network import network
from sully.machinery.cel.library.optionals import optionals
from sully.machinery.cel.library.standard import mixed_orderings, standard
from sully.machinery.cel.library.strings import reversal, strings
from sully.machinery.cel.library.urls import urls


@lru_cache(maxsize=1)
def standard_library() -> Library:
    """Return what the language itself has, with optional values."""
    return merge((standard(), mixed_orderings(), conversions(), dates(), optionals()))


def expressions() -> Library:
    """Return the functions that search by regular expression."""
    return library(
        (
            ("string_find_string", "string:find(string) -> string", regex.find),
            ("string_find_all_string", "string:findAll(string) -> list(string)", regex.find_all),
            (
                "string_find_all_string_int",
                "string:findAll(string, int) -> list(string)",
                regex.find_all,
            ),
        )
    )


@lru_cache(maxsize=2)
def kubernetes_library(*, includes: bool = False) -> Library:
    """Return what Kubernetes has for every expression; `includes` comes with list attributes."""
    common = (
        standard_library(),
        _common(),
        list_extensions(),
        sets(),
        normalized_versions(),
    )
    return merge((*common, inclusion()) if includes else common)


@lru_cache(maxsize=1)
def cluster_library() -> Library:
    """Return what OCM has for the predicates of placements.

    It is the language itself with some libraries of Kubernetes in their first versions.
    """
    numbers = dynamic(mixed_orderings())
    language = merge((standard(), numbers, conversions(), dates(), optionals()))
    return merge((language, _common(), reversal()))


def _common() -> Library:
    return merge(
        (
            strings(),
            kubernetes_lists(),
            expressions(),
            urls(),
            network(),
            named_formats(),
            quantities(),
            versions(),
        )
    )


@lru_cache(maxsize=1)
def full_library() -> Library:
    """Return all functions, for other environments and for tests."""
    return merge((kubernetes_library(includes=True), reversal()))
