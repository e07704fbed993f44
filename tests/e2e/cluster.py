"""A cluster of simulated nodes as its users see it: through kubectl, waiting for what it says.

Nothing here sleeps: `kubectl wait`, `kubectl rollout status` and watches end when things are so.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import manifests
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]

DRIVER = "gpu.sully.dev"
RESOURCE = "resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Runs kubectl, in one namespace."""

    kubectl: Path
    kubeconfig: Path
    home: Path
    namespace: str = "default"

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Run kubectl; return what it prints."""
        done = self._run(arguments, given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, given: str | None = None) -> str:
        """Run kubectl, which must fail; return what it says."""
        done = self._run(arguments, given)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stderr

    def _run(
        self, arguments: tuple[str, ...], given: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.kubectl, "-n", self.namespace, *arguments],
            env=self._environment(),
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )

    def _environment(self) -> dict[str, str]:
        # Without garbage collection, kubectl takes a fifth less of processor time.
        given = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "GOGC": "off"}
        return os.environ | given

    def apply(self, *objects: Obj) -> None:
        """Apply objects."""
        whole = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.run("apply", "-f", "-", given=json.dumps(whole))

    def replace(self, obj: Obj) -> None:
        """Replace an object as a driver does."""
        self.run("replace", "-f", "-", given=json.dumps(obj))

    def get(self, *what: str) -> Obj:
        """Return an object, or a list."""
        found: Obj = json.loads(self.run("get", *what, "-o", "json"))
        return found

    def wait(self, condition: str, *what: str) -> None:
        """Wait until objects have a condition."""
        self.run("wait", f"--for=condition={condition}", f"--timeout={PATIENCE}s", *what)

    def gone(self, *pods: str) -> None:
        """Wait until pods are not there any more."""
        for each in pods:
            self.removed("pod", each)

    def created(self, kind: str, name: str) -> None:
        """Wait until an object is there."""
        words = ("get", kind, "--watch", "--no-headers", f"--field-selector=metadata.name={name}")
        with self._following(*words) as lines:
            assert next(lines, ""), f"{kind} {name} did not come"

    def removed(self, kind: str, name: str, *where: str) -> None:
        """Wait until an object is not there any more."""
        asked = ("wait", "--for=delete", f"--timeout={PATIENCE}s", f"{kind}/{name}", *where)
        done = self._run(asked)
        # Older ones fail where the object went before they asked.
        assert done.returncode == 0 or "NotFound" in done.stderr, done.stdout + done.stderr

    def rolled_out(self, deployment: str) -> None:
        """Wait until a deployment has all its pods."""
        self.run("rollout", "status", f"deployment/{deployment}", f"--timeout={PATIENCE}s")

    def event(self, text: str) -> None:
        """Wait until an event of the namespace says something."""
        words = ("get", "events", "--watch", "-o", "custom-columns=M:.message", "--no-headers")
        with self._following(*words) as lines:
            assert any(text in line for line in lines), f"no event says {text!r}"

    def shows(self, text: str, path: str, kind: str, name: str) -> None:
        """Wait until a field of an object is written so; values of a list stand with commas."""
        self.becomes(lambda shown: shown == text, path, kind, name)

    def becomes(self, right: Callable[[str], bool], path: str, kind: str, name: str) -> None:
        """Wait until what is written in a field of an object is right."""
        named = f"--field-selector=metadata.name={name}"
        words = ("get", kind, named, "--watch", "-o", f"custom-columns=C:{path}", "--no-headers")
        shown = []
        with self._following(*words) as lines:
            for line in lines:
                shown.append(line.strip())
                if right(shown[-1]):
                    return
        raise AssertionError(f"{path} of {kind} {name} only ever was: {shown}")

    def condition(self, rule: str, type_: str = "EvictionInProgress") -> tuple[str, str, str]:
        """Return what a rule says: status, reason and message."""
        found = self.get("devicetaintrule", rule)["status"]["conditions"]
        (only,) = [each for each in found if each["type"] == type_]
        return only["status"], only["reason"], only["message"]

    @contextmanager
    def _following(self, *arguments: str) -> Iterator[Iterator[str]]:
        command = ["timeout", str(PATIENCE), str(self.kubectl), "-n", self.namespace, *arguments]
        with subprocess.Popen(
            command,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            try:
                yield iter(child.stdout or ())
            finally:
                child.terminate()

    # -- who is where ------------------------------------------------------------------------------

    def pods(self, app: str) -> list[Obj]:
        """Return the pods of an application that stay."""
        found: list[Obj] = self.get("pods", "-l", f"app={app}")["items"]
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def names(self, app: str) -> list[str]:
        """Return the names of the pods of an application that stay."""
        return sorted(each["metadata"]["name"] for each in self.pods(app))

    def devices(self, *pods: str) -> list[tuple[str, str]]:
        """Return the devices that pods hold, as pool and device."""
        found = []
        for claim in self.get("resourceclaims")["items"]:
            status = claim.get("status") or {}
            if {each["name"] for each in status.get("reservedFor") or ()} & set(pods):
                results = status["allocation"]["devices"]["results"]
                found += [(each["pool"], each["device"]) for each in results]
        return sorted(found)


# -- what people write -----------------------------------------------------------------------------


def rule(name: str, effect: str, *, key: str = "example.com/sick", **selector: str) -> Obj:
    return manifests.rule(name, effect, key=key, selector=selector)


def tolerate(seconds: int | None = None, key: str = "example.com/sick") -> Obj:
    found: Obj = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else found | {"tolerationSeconds": seconds}


def devices(count: int = 1, *tolerations: Obj, class_: str = DRIVER) -> Obj:
    """Return the spec of a claim."""
    more: Obj = {"tolerations": list(tolerations)} if tolerations else {}
    return manifests.claim_spec(class_, "gpu", count=count, **more)


def template(name: str, spec: Obj) -> Obj:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": spec},
    }


def claim(name: str, spec: Obj) -> Obj:
    metadata = {"name": name}
    return {"apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def pod_spec(**which: str) -> Obj:
    return {
        "containers": [{"name": "c", "image": "example.com/x:1"}],
        "resourceClaims": [{"name": "gpu", **which}],
        "terminationGracePeriodSeconds": 5,
    }


def pod(name: str, app: str, **which: str) -> Obj:
    metadata = {"name": name, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**which)}


def deployment(name: str, replicas: int = 1) -> Obj:
    """Return a deployment whose claims come from the template of the same name."""
    body = manifests.deployment(name, replicas)
    body["spec"]["template"]["spec"] = pod_spec(resourceClaimTemplateName=name)
    return body
