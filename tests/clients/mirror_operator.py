"""A small operator: keeps a copy of every labelled ConfigMap, and removes it with the original.

Run by `test_kopf.py` as its author would run it: `kopf run mirror_operator.py`.
"""

from typing import Any

import kopf
import kubernetes

MIRROR = {"mirror": "yes"}
BACKUPS = "backups.mirror.example.com"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Log in, and configure what kopf stores where."""
    kubernetes.config.load_kube_config()
    settings.posting.enabled = True
    settings.persistence.finalizer = "mirror.example/finalizer"


@kopf.on.create("configmaps", labels=MIRROR)
@kopf.on.update("configmaps", labels=MIRROR)
def mirror(body: kopf.Body, name: Any, namespace: Any, patch: kopf.Patch, **_: Any) -> None:
    """Write the copy, and note on the original that it is there."""
    core: Any = kubernetes.client.CoreV1Api()
    copy = {"metadata": {"name": f"{name}-copy"}, "data": dict(body.get("data") or {})}
    try:
        core.replace_namespaced_config_map(f"{name}-copy", namespace, copy)
    except kubernetes.client.ApiException as error:
        if error.status != 404:
            raise
        core.create_namespaced_config_map(namespace, copy)
    patch.metadata.annotations["mirror.example/copied"] = str(len(copy["data"]))
    kopf.info(body, reason="Copied", message="the copy is up to date")


@kopf.on.delete("configmaps", labels=MIRROR)
def remove(name: Any, namespace: Any, **_: Any) -> None:
    """Remove the copy before the original goes."""
    kubernetes.client.CoreV1Api().delete_namespaced_config_map(f"{name}-copy", namespace)


@kopf.on.create(BACKUPS)
@kopf.on.update(BACKUPS)
def back_up(spec: Any, **_: Any) -> dict[str, Any]:
    """Report how many copies there are; kopf writes what is returned to the status."""
    return {"copies": spec["copies"]}
