"""Validates the structure of a kubeconfig, which is often written by hand.

kubeconfig.py relies on it. Scalars are not checked: numbers are accepted as strings.
"""

from __future__ import annotations

from typing import Any

import msgspec

_List = list[Any] | None
_Mapping = dict[Any, Any] | None


class _Shape(msgspec.Struct, rename="kebab"):
    """Base of what is checked; fields that are not named may be anything."""


class _Variable(_Shape):
    name: Any
    value: Any


class _Exec(_Shape):
    args: _List = None
    env: list[_Variable] | None = None


class _User(_Shape):
    exec: _Exec | None = None
    as_groups: _List = None
    as_user_extra: dict[Any, list[Any]] | None = None


class _Cluster(_Shape):
    extensions: list[dict[Any, Any]] | None = None


class _ClusterItem(_Shape):
    cluster: _Cluster | None = None


class _UserItem(_Shape):
    user: _User | None = None


class _ContextItem(_Shape):
    context: _Mapping = None


class _File(_Shape):
    clusters: list[_ClusterItem] | None = None
    users: list[_UserItem] | None = None
    contexts: list[_ContextItem] | None = None


def structure_problem(content: Any) -> str:
    """Return what is wrong with the structure of a kubeconfig, and where; empty if valid."""
    try:
        msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
