"""A request for a proof: which device, for which object, and the Job and claim that follow from it.

Names are digests of the request, so that a controller that restarts finds its Job again instead of
creating another one. The Job is owned by the object that wants the proof, the claim by the Job.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from hashlib import sha256
from math import ceil
from typing import Any, Final

import msgspec

from sully.api.resource.claim_strategy import ADMIN_LABEL
from sully.api.resource.types import ResourceClaim, ResourceClaimSpec
from sully.api.sully.durations import duration
from sully.api.sully.policies.proof_validation import CLAIM, DEFAULTS
from sully.api.sully.types import DeviceProof, DeviceProofJob
from sully.machinery.meta import ObjectMeta

__all__ = ["ADMIN_LABEL", "OWNER", "ProofRequest", "ProofSettings", "build_claim", "build_job"]

Obj = dict[str, Any]

OWNER: Final = "sully.dev/proof-owner"
"""The label of Jobs and claims with the uid of the object that wants the proof."""
DEVICE: Final = "sully.dev/device"
"""The annotation of Jobs, claims and pods with the device, written `driver/pool/device`."""
_NAME_MAX: Final = 40
"""Of the owner's name in that of a Job, which is also the value of a label."""


class ProofSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The Jobs that an object specifies: durations, numbers, and no gaps."""

    namespace: str
    device_class: str
    template: Obj
    timeout: timedelta
    retry_after: timedelta
    attempts: int
    parallelism: int


def settings_of(proof: DeviceProof | None) -> ProofSettings | None:
    """Return the Jobs of a proof; None if there are none.

    On other servers a field may lack its default.
    """
    job = proof.job if proof is not None and proof.type == "Job" else None
    if job is None:
        return None
    return ProofSettings(
        namespace=job.namespace,
        device_class=job.device_class_name,
        template=job.template if isinstance(job.template, dict) else {},
        timeout=_duration(job, "timeout"),
        retry_after=_duration(job, "retryAfter"),
        attempts=max(1, job.attempts or DEFAULTS["attempts"]),
        parallelism=max(1, job.parallelism or DEFAULTS["parallelism"]),
    )


def _duration(job: DeviceProofJob, name: str) -> timedelta:
    value = {"timeout": job.timeout, "retryAfter": job.retry_after}[name]
    return duration(value) or duration(DEFAULTS[name])


class ProofOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The object that wants proofs."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def reference(self) -> Obj:
        """Return the owner reference."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
        }


class ProofRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One Job for one device."""

    owner: ProofOwner
    settings: ProofSettings
    device: str
    """Written `driver/pool/device`."""
    expression: str
    """The CEL expression that selects exactly the device: selection.py."""
    run: str
    """What distinguishes this Job from others for the same device and owner."""

    @property
    def name(self) -> str:
        """Return the name of the Job and of the claim."""
        return run_name(self.owner, self.device, self.run)


def run_name(owner: ProofOwner, device: str, run: str) -> str:
    """Return the name of the Job of one run."""
    digest = sha256("\0".join((owner.uid, device, run)).encode()).hexdigest()[:16]
    return f"{owner.name.replace('.', '-')[:_NAME_MAX].rstrip('-')}-{digest}"


def build_job(request: ProofRequest) -> Obj:
    """Return the Job: the template, with the claim, a deadline and who it is for."""
    template = deepcopy(request.settings.template)
    spec = _child(template, "spec")
    spec["activeDeadlineSeconds"] = max(1, ceil(request.settings.timeout.total_seconds()))
    spec.setdefault("backoffLimit", 0)
    pods = _child(spec, "template")
    _with_device(_child(pods, "metadata"), request.device)
    _with_claim(_child(pods, "spec"), request.name)
    return {"metadata": _metadata(request, _child(template, "metadata")), "spec": spec} | {
        "apiVersion": "batch/v1",
        "kind": "Job",
    }


def build_claim(request: ProofRequest, job: ObjectMeta) -> Obj:
    """Return the claim for exactly the device of a request, which ends with its Job."""
    owner = ProofOwner(api_version="batch/v1", kind="Job", name=job.name, uid=job.uid)
    exactly = {
        "deviceClassName": request.settings.device_class,
        "allocationMode": "ExactCount",
        "count": 1,
        "adminAccess": True,
        "selectors": [{"cel": {"expression": request.expression}}],
        "tolerations": [{"operator": "Exists"}],
    }
    return {
        "metadata": _metadata(request, {}) | {"ownerReferences": [owner.reference]},
        "spec": {"devices": {"requests": [{"name": CLAIM, "exactly": exactly}]}},
    }


def is_claim_of(request: ProofRequest, job: ObjectMeta, claim: ResourceClaim) -> bool:
    """Report whether a claim is the one of a Job: others may create one with its name."""
    spec = msgspec.convert(build_claim(request, job)["spec"], ResourceClaimSpec)
    return claim.metadata.is_controlled_by(job.uid) and claim.spec == spec


def _metadata(request: ProofRequest, template: Obj) -> Obj:
    labels = {**(template.get("labels") or {}), OWNER: request.owner.uid}
    metadata: Obj = {
        "name": request.name,
        "namespace": request.settings.namespace,
        "labels": labels,
        "annotations": dict(template.get("annotations") or {}),
        "ownerReferences": [request.owner.reference],
    }
    _with_device(metadata, request.device)
    return metadata


def _with_device(metadata: Obj, device: str) -> None:
    metadata["annotations"] = {**(metadata.get("annotations") or {}), DEVICE: device}


def _with_claim(pod: Obj, claim: str) -> None:
    pod["restartPolicy"] = pod.get("restartPolicy") or "Never"
    reference = {"name": CLAIM, "resourceClaimName": claim}
    pod["resourceClaims"] = [*(pod.get("resourceClaims") or ()), reference]
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        resources = _child(container, "resources")
        resources["claims"] = resources.get("claims") or [{"name": CLAIM}]


def _child(parent: Obj, name: str) -> Obj:
    """Return an object within another one, which is there from now on."""
    value = parent.get(name)
    parent[name] = value if isinstance(value, dict) else {}
    child: Obj = parent[name]
    return child
