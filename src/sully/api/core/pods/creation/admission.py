"""What the cluster adds to pods before they are checked: account, priority, tolerations.

In the API server these are admission plugins; they come after defaults and before validation, and
refuse with 403. The order here is theirs.
"""

from typing import Any

from sully.api.core.pods.creation.defaults import mirror_service_account
from sully.api.core.pods.creation.priorities import admit_priority
from sully.api.core.pods.mirrors import is_mirror, review_mirror
from sully.api.core.quotas.limits import review_pod, set_container_defaults
from sully.machinery.errors import pod_not_admitted
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import WriteContext

Obj = dict[str, Any]

_TOKEN_VOLUME = "kube-api-access-"
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607  # odd on purpose upstream: distinguishes tokens made for pods from others
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_STAY_SECONDS = 300
_DEFAULT_ACCOUNT = "default"


def admit_new(pod: Obj, ctx: WriteContext) -> None:
    """Complete a pod that is being created, or refuse it."""
    _service_account(pod, ctx)
    admit_priority(pod, ctx)
    _tolerations(pod["spec"])
    _runtime_class(pod, ctx)
    set_container_defaults(pod, _limit_ranges(pod, ctx))


def _limit_ranges(pod: Obj, ctx: WriteContext) -> list[Obj]:
    return ctx.limit_ranges(pod["metadata"].get("namespace", ""))


def review_new(pod: Obj, ctx: WriteContext) -> None:
    """Refuse a pod that exceeds limits or sets what only a RuntimeClass may, or a bad mirror."""
    review_pod(pod, _limit_ranges(pod, ctx))
    review_mirror(pod)
    if pod["spec"].get("overhead") and not pod["spec"].get("runtimeClassName"):
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise pod_not_admitted(pod, f"pod rejected: {why}")


def expected_account(pod: Obj) -> tuple[str, str] | None:
    """Return the account that every namespace gets, for pods that use it; others must exist."""
    named = pod["spec"].get("serviceAccountName") or _DEFAULT_ACCOUNT
    return ("serviceaccounts", named) if named == _DEFAULT_ACCOUNT and not is_mirror(pod) else None


def admit_change(pod: Obj, old: Obj) -> None:
    """Complete a pod that is being replaced: what only the cluster sets is carried over."""
    for name in ("priority", "preemptionPolicy"):
        if name not in pod["spec"] and name in old["spec"]:
            pod["spec"][name] = old["spec"][name]
    _tolerations(pod["spec"])


def _service_account(pod: Obj, ctx: WriteContext) -> None:
    if is_mirror(pod):
        # A pod that a node runs on its own may not use the API at all.
        return
    spec, namespace = pod["spec"], pod["metadata"].get("namespace", "")
    spec["serviceAccountName"] = name = spec.get("serviceAccountName") or _DEFAULT_ACCOUNT
    mirror_service_account(spec)
    account = ctx.lookup("serviceaccounts", namespace, name)
    if account is None:
        why = f"serviceaccount {quote(name)} not found"
        raise pod_not_admitted(pod, f"error looking up service account {namespace}/{name}: {why}")
    if _wants_token(spec, account):
        _mount_token(spec, ctx)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]


def _wants_token(spec: Obj, account: Obj) -> bool:
    for source in (spec, account):
        automount = source.get("automountServiceAccountToken")
        if automount is not None:
            return bool(automount)
    return True


def _mount_token(spec: Obj, ctx: WriteContext) -> None:
    volumes = spec.get("volumes") or []
    names = [volume["name"] for volume in volumes if volume["name"].startswith(_TOKEN_VOLUME)]
    name = names[0] if names else _TOKEN_VOLUME + ctx.new_suffix()
    mounted = False
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        mounts = container.get("volumeMounts") or []
        if all(mount["mountPath"] != _TOKEN_PATH for mount in mounts):
            mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
            container["volumeMounts"] = [*mounts, mount]
            mounted = True
    if mounted and not names:
        spec["volumes"] = [*volumes, _token_volume(name)]


def _token_volume(name: str) -> Obj:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    certificate = {"key": "ca.crt", "path": "ca.crt"}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [certificate]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
            ],
            "defaultMode": 0o644,
        },
    }


def _runtime_class(pod: Obj, ctx: WriteContext) -> None:
    """Refuse a RuntimeClass, unless unknown ones are accepted: none can be created here."""
    name = pod["spec"].get("runtimeClassName")
    if name and not ctx.compat.accepts_unknown_runtime_classes:
        raise pod_not_admitted(pod, f"pod rejected: RuntimeClass {quote(name)} not found")


def _tolerations(spec: Obj) -> None:
    """Tolerate unreachable nodes for a while, unless the pod has such tolerations itself."""
    existing = spec.get("tolerations") or []
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _STAY_SECONDS,
        }
        for key in _NODE_TAINTS
        if not any(_speaks_of(toleration, key) for toleration in existing)
    ]
    if added:
        spec["tolerations"] = [*existing, *added]


def _speaks_of(toleration: Obj, key: str) -> bool:
    same_key = toleration.get("key", "") in ("", key)
    return same_key and toleration.get("effect", "") in ("", "NoExecute")
