"""The pods of StatefulSets, and their volume claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sully.controllers.pod_control import pod_of
from sully.controllers.workloads import STATEFUL_SETS
from sully.domain.workloads.history import HASH_LABEL
from sully.domain.workloads.statefulsets import StatefulSet

Obj = dict[str, Any]


def pod_with_ordinal(owner: StatefulSet, ordinal: int, template: Obj, revision: str) -> Obj:
    """Return the pod of an ordinal, with its name, host name and volume claims."""
    name = owner.pod_name(ordinal)
    body = pod_of(STATEFUL_SETS, owner, template, name)
    metadata, spec = body["metadata"], body["spec"]
    # The generated part is empty, as in Kubernetes.
    metadata["generateName"] = f"{owner.name}-"
    metadata["labels"] = metadata.get("labels", {}) | {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        HASH_LABEL: revision,
    }
    spec["hostname"] = name
    if owner.spec.service_name:
        spec["subdomain"] = owner.spec.service_name
    claims = {_template_name(claim): claim for claim in owner.spec.volume_claim_templates}
    if claims:
        volumes = [
            {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}}
            for volume in claims
        ]
        others = [v for v in spec.get("volumes") or () if v["name"] not in claims]
        spec["volumes"] = [*others, *volumes]
    return body


def claims_of(owner: StatefulSet, ordinal: int) -> Iterator[Obj]:
    """Yield the volume claims of an ordinal."""
    labels = (owner.spec.selector or {}).get("matchLabels") or {}
    for template in owner.spec.volume_claim_templates:
        metadata = template.get("metadata") or {}
        yield {
            "metadata": {
                "name": f"{_template_name(template)}-{owner.pod_name(ordinal)}",
                "namespace": owner.metadata.namespace,
                "labels": (metadata.get("labels") or {}) | labels,
                "annotations": metadata.get("annotations") or {},
            },
            "spec": template.get("spec") or {},
        }


def _template_name(template: Obj) -> str:
    return str((template.get("metadata") or {}).get("name", ""))
