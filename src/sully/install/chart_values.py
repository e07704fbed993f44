"""The values of the Helm chart: one table for defaults, schema and documentation."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from sully.domain.capabilities.duties import Evictor
from sully.install.workload import Settings, deployment

Obj = dict[str, Any]


class Value(msgspec.Struct, frozen=True):
    """A value that users of the chart may set."""

    path: str
    default: Any
    schema: Obj
    description: str


_SWITCH: Obj = {"type": "boolean"}
_OBJECT: Obj = {"type": "object"}
_CONTAINER = deployment(Settings())["spec"]["template"]["spec"]["containers"][0]

VALUES = (
    Value("image", "", {"type": "string"}, "Image of the controllers. Required."),
    Value(
        "replicas", 2, {"type": "integer", "minimum": 1}, "Number of replicas; one of them leads."
    ),
    Value(
        "evictor",
        Settings().evictor,
        {"enum": list(get_args(Evictor))},
        "Who evicts: server (Kubernetes' own controller) or sully, if that one is disabled.",
    ),
    Value("resources", _CONTAINER["resources"], _OBJECT, "Requests and limits of the container."),
    Value("priorityClassName", "", {"type": "string"}, "PriorityClass of the pods."),
    Value("priorityClass.create", False, _SWITCH, "Create the PriorityClass."),
    Value(
        "priorityClass.value",
        1_000_000_000,
        {"type": "integer", "maximum": 1_000_000_000},
        "Priority of the PriorityClass that is created.",
    ),
    Value("nodeSelector", {}, _OBJECT, "Labels of nodes where the pods may run."),
    Value("tolerations", [], {"type": "array"}, "Tolerations of the pods."),
    Value("affinity", {}, _OBJECT, "Affinity of the pods."),
    Value("imagePullSecrets", [], {"type": "array"}, "Secrets with which nodes pull the image."),
    Value(
        "notifications.secretName",
        "",
        {"type": "string"},
        "Secret with the configuration of notifications in its key config.yaml.",
    ),
    Value(
        "prometheus.secretName",
        "",
        {"type": "string"},
        "Secret with the Prometheus servers of policies in its key servers.yaml, and their tokens.",
    ),
    Value("crds.enabled", True, _SWITCH, "Install the CustomResourceDefinitions; they are kept."),
    Value("podDisruptionBudget.enabled", True, _SWITCH, "Keep all but one replica available."),
    Value(
        "networkPolicy.enabled",
        True,
        _SWITCH,
        "Accept connections only from namespaces with the label metrics=enabled.",
    ),
    Value(
        "serviceMonitor.enabled", False, _SWITCH, "Create a ServiceMonitor (Prometheus operator)."
    ),
    Value("alerts.enabled", False, _SWITCH, "Create a PrometheusRule (Prometheus operator)."),
    Value("dashboard.enabled", False, _SWITCH, "Create the ConfigMap of a Grafana dashboard."),
)


def defaults() -> dict[str, Any]:
    """Return the default of every value, by its path."""
    return {value.path: value.default for value in VALUES}


def schema() -> Obj:
    """Return the JSON schema of all values; others are refused, for a typo must not be ignored."""
    properties: Obj = {}
    for value in VALUES:
        *outer, name = value.path.split(".")
        where = properties
        for part in outer:
            where = where.setdefault(part, _closed({}))["properties"]
        where[name] = {"description": value.description, **value.schema}
    # Helm adds this one to the values of a chart that is used by another.
    properties["global"] = _OBJECT
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_closed(properties)}


def _closed(properties: Obj) -> Obj:
    return {"type": "object", "additionalProperties": False, "properties": properties}
