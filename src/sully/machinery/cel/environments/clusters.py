"""The environment of cluster predicates, and managed clusters as its input.

An expression sees one variable, `managedCluster`: the whole object as a map of unknown shape. Two
member functions come with it: `managedCluster.scores("name")`, the entries of that cluster's
AddOnPlacementScore of the name, and `text.parseJSON()`. Its neighbour is devices.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, library, merge
from sully.machinery.cel.environment import Environment
from sully.machinery.cel.errors import EvaluationError, NoSuchOverloadError
from sully.machinery.cel.library.catalogue import cluster_library
from sully.machinery.cel.syntax.macros import expand_standard
from sully.machinery.formats.quantity import QuantityError, canonical
from sully.machinery.formats.timestamps import canonical_time
from sully.machinery.serialization.codec import BodyError, parse_json

VARIABLE: Final = "managedCluster"
EXPRESSION_LIMIT: Final = 1_000_000
SELECTOR_LIMIT: Final = 10_000_000
"""What all expressions of one selector may cost together, for one cluster."""

FindScores = Callable[[str], Sequence[Mapping[str, Any]] | None]


class ClusterValue(dict[str, Any]):
    """A managed cluster as expressions see it, with the way to its scores."""

    __slots__ = ("find_scores",)

    def __init__(self, obj: Mapping[str, Any], find_scores: FindScores) -> None:
        super().__init__(_as_written(obj))
        self.find_scores = find_scores


def no_scores(_name: str) -> None:
    """Find nothing: for a cluster without scores."""


def cluster_input(
    obj: Mapping[str, Any], find_scores: FindScores = no_scores
) -> dict[str, ClusterValue]:
    """Return the activation of one cluster, in the form of the wire.

    `find_scores` gets the name of an AddOnPlacementScore and returns `status.scores` of that one
    in the cluster's namespace, or None if there is none.
    """
    return {VARIABLE: ClusterValue(obj, find_scores)}


@lru_cache(maxsize=1)
def cluster_environment() -> Environment:
    """Return the environment of cluster predicates.

    A result of any type compiles; the caller takes everything but true for "no match". OCM checks
    less than Kubernetes: literals may mix types, and are only read when they are evaluated.
    """
    return Environment(
        library=merge((cluster_library(), _member_functions())),
        variables={VARIABLE: types.map_of(types.STRING, types.DYN)},
        limit=EXPRESSION_LIMIT,
        homogeneous=False,
        validated=False,
        expand=expand_standard,
    )


def _member_functions() -> Library:
    # The target is dynamic: a cluster is a map like any other until it is evaluated.
    return library(
        (
            ("cluster_scores", "dyn:scores(string) -> list(dyn)", _scores),
            ("string_parse_json", "string:parseJSON() -> dyn", _parse_json),
        )
    )


def _scores(cluster: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(cluster, ClusterValue):
        raise NoSuchOverloadError
    scores = cluster.find_scores(name)
    if scores is None:
        own = cluster.get("metadata", {}).get("name", "")
        text = f'addonplacementscores.cluster.open-cluster-management.io "{name}" not found'
        raise EvaluationError(f"failed to get scores of cluster {own}: {text}")
    return [{"name": score["name"], "value": score["value"]} for score in scores]


def _parse_json(text: str) -> Any:
    try:
        return parse_json(text.encode())[0]
    except BodyError as error:
        raise EvaluationError(f"failed to parse JSON: {error}") from None


def _as_written(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster as OCM's own types write it: some fields are always there.

    Others never are as they were sent: amounts are texts, times are in UTC.
    """
    spec = {"hubAcceptsClient": False, **(obj.get("spec") or {})}
    if spec.get("taints"):
        spec["taints"] = [{"timeAdded": None, **taint} for taint in spec["taints"]]
    if not spec.get("leaseDurationSeconds"):
        spec.pop("leaseDurationSeconds", None)
    status = {"conditions": None, "version": {}, **(obj.get("status") or {})}
    for name in ("capacity", "allocatable"):
        if name in status:
            status[name] = {resource: _amount(sent) for resource, sent in status[name].items()}
    if status["conditions"]:
        status["conditions"] = [_condition(sent) for sent in status["conditions"]]
    return {**obj, "spec": spec, "status": status}


def _amount(sent: Any) -> str:
    try:
        return canonical(str(sent))
    except QuantityError:
        return str(sent)


def _condition(sent: Mapping[str, Any]) -> Mapping[str, Any]:
    since = sent.get("lastTransitionTime")
    return {**sent, "lastTransitionTime": canonical_time(since)} if since else sent
