"""Binds a pod to a node: what the binding subresource changes in the pod."""

from typing import Any

from sully.api.core.pods.conditions import POD_SCHEDULED, with_condition
from sully.machinery.errors import BadRequest, aggregate, client_error, conflict
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_subdomain_problems
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

BINDING = "Binding"
# The older endpoint, in addition to the subresource of the pod.
BINDINGS = ResourceType(
    group="",
    kind=BINDING,
    plural="bindings",
    singular="binding",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1"),),
    strategy=Strategy(),
    virtual=True,
)

# The topology labels of the node, which are copied to the pod.
_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def check_binding(name: str, binding: Obj, ctx: WriteContext) -> None:
    """Refuse a binding that is wrong by itself, before the pod is read."""
    if binding["metadata"].get("name", "") != name:
        raise BadRequest("name in URL does not match name in Binding object")
    problems = [*_problems(binding["target"])]
    if problems:
        raise client_error(aggregate(problems), ctx.compat)


def _problems(target: Obj) -> list[FieldError]:
    kind, at, errors = target.get("kind", ""), Path("target"), []
    if kind not in ("", "Node"):
        errors.append(at.child("kind").not_supported(kind, ("Node", "<empty>")))
    name = target.get("name")
    if not name:
        errors.append(at.child("name").required())
    elif kind in ("", "Node"):
        errors += [at.child("name").invalid(name, text) for text in dns_subdomain_problems(name)]
    return errors


def bind_pod(pod: Obj, binding: Obj, ctx: WriteContext) -> Obj:
    """Return the pod with the binding applied, or raise the error that refuses it.

    Labels and annotations of the binding go over to the pod, and so does the place of the node. The
    nomination is cleared: a pod that has a node needs none, also if it was for another node.
    """
    name, node = pod["metadata"]["name"], binding["target"]["name"]
    _refuse(pod, binding, name)
    metadata = dict(pod["metadata"])
    place = _place(node, ctx)
    for field, more in (("annotations", {}), ("labels", place)):
        added = (binding["metadata"].get(field) or {}) | more
        if added:
            metadata[field] = (metadata.get(field) or {}) | added
    status = {name: value for name, value in pod["status"].items() if name != "nominatedNodeName"}
    spec = {**pod["spec"], "nodeName": node}
    bound = {**pod, "metadata": metadata, "spec": spec, "status": status}
    return with_condition(bound, {"type": POD_SCHEDULED, "status": "True"}, ctx.now)


def _refuse(pod: Obj, binding: Obj, name: str) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    _check_preconditions(metadata, binding["metadata"])
    why = ""
    if "deletionTimestamp" in metadata:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f"pod {name} is already assigned to node {quote(spec['nodeName'])}"
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict("pods/binding", "", name, why)


def _check_preconditions(metadata: Obj, expected: Obj) -> None:
    key = f"/registry/pods/{metadata.get('namespace', '')}/{metadata['name']}"
    for name, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        required, actual = expected.get(name), metadata.get(name, "")
        if required and required != actual:
            text = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0,"
                f" AdditionalErrorMsg: Precondition failed: {word} in precondition: {required},"
                f" {word} in object meta: {actual}"
            )
            raise conflict("pods", "", metadata["name"], text)


def _place(node: str, ctx: WriteContext) -> dict[str, str]:
    stored = ctx.lookup("nodes", "", node) or {"metadata": {}}
    labels = stored["metadata"].get("labels") or {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}
