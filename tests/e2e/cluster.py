"""A cluster of simulated nodes as its users see it: its objects, and waiting for their state.

Nothing here sleeps or polls: who waits follows a watch until things are so. `run` is kubectl, for
the tests of what it prints or does; the rest is plain HTTPS, because a process of kubectl takes
ten times the processor time of a request. How kubectl asks is shown by the sessions.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import manifests
from e2e import watching
from e2e.raw import Answer, KeptRaw, Raw
from e2e.watching import Named
from embedded import SCHEME
from serving import APPLY, MERGE
from sully.machinery.customresources import jsonpath
from sully.machinery.scheme import version_priority
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]

DRIVER = "gpu.sully.dev"
RESOURCE = "resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects of one namespace, and those of the cluster, as the user of a kubeconfig."""

    kubectl: Path
    kubeconfig: Path
    home: Path
    namespace: str = "default"
    _raw: Raw = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_raw", KeptRaw.admin(self.kubeconfig, self.home))

    # -- kubectl -----------------------------------------------------------------------------------

    def run(self, *arguments: str) -> str:
        """Run kubectl; return what it prints."""
        # Without garbage collection, kubectl takes a fifth less of processor time.
        flags = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "GOGC": "off"}
        done = subprocess.run(
            [self.kubectl, "-n", self.namespace, *arguments],
            env=os.environ | flags,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    # -- reading and writing -----------------------------------------------------------------------

    def request(self, verb: str, path: str, body: object = None) -> Obj:
        """Send a request that must succeed; return the response."""
        return _ok(self._raw.request(verb, path, body), f"{verb} {path}")

    def apply(self, *objects: Obj) -> None:
        """Apply objects."""
        for obj in objects:
            path = f"{self._path_of(obj)}?fieldManager=tests&force=true"
            _ok(self._raw.request("PATCH", path, obj, APPLY), f"apply {path}")

    def create_namespace(self, name: str = "", **labels: str) -> None:
        """Create a namespace; the one of this cluster if no other is named."""
        metadata = {"name": name or self.namespace, "labels": labels}
        self.request("POST", "/api/v1/namespaces", {"metadata": metadata})

    def replace(self, obj: Obj) -> None:
        """Replace an object as a driver does."""
        self.request("PUT", self._path_of(obj), obj)

    def refused(self, obj: Obj) -> str:
        """Replace an object, which must fail; return why it did."""
        answer = self._raw.request("PUT", self._path_of(obj), obj)
        assert answer.code >= 400, answer.body
        return str(answer.json()["message"])

    def patch(self, what: str, change: Obj, *, media: str = MERGE, subresource: str = "") -> None:
        """Change an object, given as kind/name, by a part of it."""
        path = f"{self._path(*_named(what))}/{subresource}".removesuffix("/")
        _ok(self._raw.request("PATCH", path, change, media), f"patch {path}")

    def annotate(self, what: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of an object, or of all of a kind; None removes one."""
        kind, name = _named(what)
        for item in (name,) if name else _names(self.get(kind)["items"]):
            self.patch(f"{kind}/{item}", {"metadata": {"annotations": dict(annotations)}})

    def scale(self, what: str, replicas: int) -> None:
        """Set the number of replicas of a workload."""
        self.patch(what, {"spec": {"replicas": replicas}}, subresource="scale")

    def delete(self, *what: str, policy: str = "Background") -> None:
        """Delete objects, or all of a kind, and wait until they are gone."""
        for item in what:
            kind, name = _named(item)
            results = [self.get(kind, name)] if name else self.get(kind)["items"]
            for obj in results:
                path = self._path(kind, obj["metadata"]["name"])
                self.request("DELETE", path, {"propagationPolicy": policy})
            self._without(self._path(kind), results)

    def get(self, kind: str, name: str = "", *, namespace: str = "", **selectors: str) -> Obj:
        """Return an object, or a list, of one namespace or of all (`*`)."""
        kind, name = (kind, name) if name else _named(kind)
        path = f"{self._path(kind, name, namespace)}?{urlencode(selectors)}"
        result = self.request("GET", path)
        for item in result.get("items", ()):
            item.setdefault("apiVersion", result["apiVersion"])
            item.setdefault("kind", result["kind"].removesuffix("List"))
        return result

    # -- waiting -----------------------------------------------------------------------------------

    def wait(
        self,
        condition: str,
        *what: str,
        namespace: str = "",
        number: int | None = None,
        **selectors: str,
    ) -> None:
        """Wait until objects, or all of a kind, have a condition; `Ready` means `Ready=True`.

        A server that has just started may not have created all of them: `number` is how many.
        """
        type_, _, status = condition.partition("=")
        has = functools.partial(_has, type_=type_, status=status or "True")
        for item in what:
            kind, name = _named(item)
            if name:
                self.until(has, kind, name)
                continue
            path = self._path(kind, namespace=namespace)
            watching.until(
                self._raw,
                path,
                lambda all_: _every(has, all_) and number in (None, len(all_)),
                **selectors,
            )

    def gone(self, *pods: str) -> None:
        """Wait until pods are not there any more."""
        for pod in pods:
            self.removed("pod", pod)

    def created(self, kind: str, name: str) -> None:
        """Wait until an object is there."""
        self.until(bool, kind, name)

    def removed(self, kind: str, name: str, namespace: str = "") -> None:
        """Wait until an object is not there any more; another of its name may be."""
        answer = self._raw.request("GET", self._path(kind, name, namespace))
        if answer.code != 404:
            body = _ok(answer, f"get {kind} {name}")
            self._without(self._path(kind, namespace=namespace), [body], name)

    def rolled_out(self, deployment: str, namespace: str = "") -> None:
        """Wait until a deployment has all its pods, as `kubectl rollout status` does."""
        self.until(_rolled_out, "deployment", deployment, namespace)

    def event(self, text: str) -> None:
        """Wait for an event of the namespace with a message."""

        def reported(events: Named) -> bool:
            return any(text in event.get("message", "") for event in events.values())

        watching.until(self._raw, self._path("events"), reported)

    def shows(self, text: str, path: str, kind: str, name: str) -> None:
        """Wait until a field of an object is written so; values of a list stand with commas."""
        self.becomes(lambda shown: shown == text, path, kind, name)

    def becomes(self, right: Callable[[str], bool], path: str, kind: str, name: str) -> None:
        """Wait until what is written in a field of an object is right."""
        self.until(lambda obj: right(_written(path, obj)), kind, name)

    def until(
        self, right: Callable[[Obj], bool], kind: str, name: str, namespace: str = ""
    ) -> None:
        """Wait until an object is right."""
        path = self._path(kind, namespace=namespace)
        only = f"metadata.name={name}"
        watching.until(self._raw, path, lambda all_: _every(right, all_), fieldSelector=only)

    def listed(
        self, right: Callable[[Named], bool], kind: str, namespace: str = "", **selectors: str
    ) -> None:
        """Wait until the objects of a kind, by name, are right."""
        watching.until(self._raw, self._path(kind, namespace=namespace), right, **selectors)

    def _without(self, path: str, objects: list[Obj], name: str = "") -> None:
        uids = {obj["metadata"]["uid"] for obj in objects}
        selected = {"fieldSelector": f"metadata.name={name}"} if name else {}

        def missing(all_: Named) -> bool:
            return uids.isdisjoint(item["metadata"]["uid"] for item in all_.values())

        watching.until(self._raw, path, missing, **selected)

    def condition(self, rule: str, type_: str = "EvictionInProgress") -> tuple[str, str, str]:
        """Return the condition of a rule: status, reason and message."""
        conditions = self.get("devicetaintrule", rule)["status"]["conditions"]
        (only,) = [item for item in conditions if item["type"] == type_]
        return only["status"], only["reason"], only["message"]

    # -- who is where ------------------------------------------------------------------------------

    def pods(self, app: str) -> list[Obj]:
        """Return the pods of an application that stay."""
        items: list[Obj] = self.get("pods", labelSelector=f"app={app}")["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def names(self, app: str) -> list[str]:
        """Return the names of the pods of an application that stay."""
        return sorted(_names(self.pods(app)))

    def devices(self, *pods: str) -> list[tuple[str, str]]:
        """Return the devices that pods hold, as pool and device."""
        actual = []
        for claim in self.get("resourceclaims")["items"]:
            status = claim.get("status") or {}
            if {item["name"] for item in status.get("reservedFor") or ()} & set(pods):
                results = status["allocation"]["devices"]["results"]
                actual += [(result["pool"], result["device"]) for result in results]
        return sorted(actual)

    # -- paths -------------------------------------------------------------------------------------

    def _path_of(self, obj: Obj) -> str:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = SCHEME.by_kind(group, version, obj["kind"])
        assert resource is not None, f"{obj['apiVersion']} {obj['kind']} is not served"
        namespace = obj["metadata"].get("namespace", self.namespace) if resource.namespaced else ""
        return _join(group, version, namespace, resource.plural, obj["metadata"]["name"])

    def _path(self, kind: str, name: str = "", namespace: str = "") -> str:
        group, version, plural, namespaced = _resource(kind)
        chosen = (namespace or self.namespace) if namespaced else ""
        return _join(group, version, chosen.removeprefix("*"), plural, name)


def _ok(answer: Answer, what: str) -> Obj:
    assert answer.code < 300, f"{what}: {answer.code} {answer.body.decode()}"
    document: Obj = answer.json()
    return document


def _join(group: str, version: str, namespace: str, plural: str, name: str) -> str:
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{inside}/{plural}/{name}".removesuffix("/")


@functools.cache
def _resource(kind: str) -> tuple[str, str, str, bool]:
    """Return group, preferred version and plural of a kind by any of its names."""
    for resource in SCHEME.resources():
        if kind.lower() in (resource.plural, resource.singular, *resource.short_names):
            versions = [version.name for version in resource.versions if version.enabled]
            return (
                resource.group,
                min(versions, key=version_priority),
                resource.plural,
                resource.namespaced,
            )
    raise AssertionError(f"no kind is called {kind}")


def _named(what: str) -> tuple[str, str]:
    kind, _, name = what.partition("/")
    return kind, name


def _names(objects: list[Obj]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def _every(right: Callable[[Obj], bool], objects: Named) -> bool:
    return bool(objects) and all(map(right, objects.values()))


def _has(obj: Obj, *, type_: str, status: str) -> bool:
    """Report whether a condition has a status, and is about the object as it is now."""
    result = obj.get("status", {})
    for condition in result.get("conditions", ()):
        if condition["type"] == type_:
            seen = condition.get("observedGeneration", result.get("observedGeneration"))
            current = seen is None or seen >= obj["metadata"].get("generation", 0)
            return current and condition["status"].lower() == status.lower()
    return False


def _rolled_out(deployment: Obj) -> bool:
    status, expected = deployment["status"], deployment["spec"]["replicas"]
    updated = status.get("updatedReplicas", 0)
    return (
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and expected <= updated
        and status.get("replicas", 0) <= updated <= status.get("availableReplicas", 0)
    )


def _written(path: str, obj: Obj) -> str:
    return ",".join(map(str, jsonpath.find(path, obj))) or "<none>"


# -- what people write -----------------------------------------------------------------------------


def rule(name: str, effect: str, *, key: str = "example.com/sick", **selector: str) -> Obj:
    return manifests.rule(name, effect, key=key, selector=selector)


def tolerate(seconds: int | None = None, key: str = "example.com/sick") -> Obj:
    exists: Obj = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return exists if seconds is None else exists | {"tolerationSeconds": seconds}


def devices(count: int = 1, *tolerations: Obj, class_: str = DRIVER) -> Obj:
    """Return the spec of a claim."""
    more: Obj = {"tolerations": list(tolerations)} if tolerations else {}
    return manifests.claim_spec(class_, "gpu", count=count, **more)


def template(name: str, spec: Obj) -> Obj:
    return manifests.claim_template(name, spec)


def claim(name: str, spec: Obj) -> Obj:
    return manifests.body("ResourceClaim", name, spec)


def pod_spec(**source: str) -> Obj:
    """Return the spec of a pod with a claim; `source` is the field that names it or a template."""
    claims = [{"name": "gpu", **source}]
    return manifests.pod_spec(resourceClaims=claims, terminationGracePeriodSeconds=5)


def pod(name: str, app: str, **source: str) -> Obj:
    return manifests.pod(name, pod_spec(**source), labels={"app": app})


def deployment(name: str, replicas: int = 1) -> Obj:
    """Return a deployment whose claims come from the template of the same name."""
    pods = manifests.pod_template({"app": name}, pod_spec(resourceClaimTemplateName=name))
    return manifests.workload("Deployment", name, pods, replicas=replicas)
