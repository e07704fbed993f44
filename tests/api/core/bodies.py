"""Bodies of requests that are right in everything a case is not about."""

from typing import Any

import manifests

Obj = dict[str, Any]


def container(**fields: Any) -> Obj:
    return {"name": "c", "image": "example.com/app:1", **fields}


def pod(*containers: Obj, metadata: Obj | None = None, **spec: Any) -> Obj:
    spec = {"containers": list(containers) or [container()], **spec}
    return manifests.pod(**{"name": "p", **(metadata or {})}, spec=spec)


def mounted(volume: Obj, **mount: Any) -> Obj:
    """A pod whose container mounts the one volume."""
    use = {"name": volume.get("name", "v"), "mountPath": "/data", **mount}
    return pod(container(volumeMounts=[use]), volumes=[volume])
