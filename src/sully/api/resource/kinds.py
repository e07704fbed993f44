"""The kinds of resource.k8s.io, as a server registers them: versions, strategies, columns.

Apart from `__init__.py`, because everyone imports the package for its types, and only a server
needs the strategies: without them commands start 30 ms sooner.
"""

from collections.abc import Callable, Iterable

from sully.api.resource import columns, package
from sully.api.resource.claim_strategy import ClaimStatusStrategy, ClaimStrategy, TemplateStrategy
from sully.api.resource.conversion import (
    claim_from_v1,
    claim_to_v1,
    slice_from_v1,
    slice_to_v1,
    template_from_v1,
    template_to_v1,
)
from sully.api.resource.pool_status_strategy import (
    PoolStatusRequestStatusStrategy,
    PoolStatusRequestStrategy,
)
from sully.api.resource.strategy import (
    ClassStrategy,
    ConditionsStrategy,
    PatchStrategy,
    RuleStrategy,
    SliceStrategy,
)
from sully.api.resource.types import GROUP
from sully.machinery.strategy import Obj, ResourceType, Strategy, Version

_Convert = Callable[[Obj], Obj]


def resources() -> Iterable[ResourceType]:
    """Return the kinds of the group."""
    yield ResourceType(
        GROUP,
        "ResourceSlice",
        "resourceslices",
        "resourceslice",
        namespaced=False,
        versions=_versions("ResourceSlice", slice_to_v1, slice_from_v1),
        strategy=SliceStrategy(),
        columns=columns.SLICE,
        selectable={
            "spec.nodeName": lambda obj: obj["spec"].get("nodeName", ""),
            "spec.driver": lambda obj: obj["spec"]["driver"],
            "spec.pool.name": lambda obj: obj["spec"]["pool"]["name"],
        },
        unknown_label=_unknown_slice_label,
        # 64 devices with all attributes, counters and taints that one can have have 17 000.
        most_values=25_000,
    )
    yield ResourceType(
        GROUP,
        "DeviceClass",
        "deviceclasses",
        "deviceclass",
        namespaced=False,
        versions=_versions("DeviceClass"),
        strategy=ClassStrategy(),
        columns=columns.CLASS,
    )
    yield ResourceType(
        GROUP,
        "ResourceClaim",
        "resourceclaims",
        "resourceclaim",
        namespaced=True,
        versions=_versions("ResourceClaim", claim_to_v1, claim_from_v1),
        strategy=ClaimStrategy(),
        status=ClaimStatusStrategy(),
        columns=columns.CLAIM,
    )
    yield ResourceType(
        GROUP,
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        "resourceclaimtemplate",
        namespaced=True,
        versions=_versions("ResourceClaimTemplate", template_to_v1, template_from_v1),
        strategy=TemplateStrategy(),
        columns=columns.TEMPLATE,
    )
    yield _tainting("DeviceTaintRule", "devicetaintrules", RuleStrategy(), _rule_versions())
    patch_versions = (Version("v1alpha3", package("v1alpha3"), delete_returns_object=True),)
    yield _tainting("ResourceSlicePatch", "resourceslicepatches", PatchStrategy(), patch_versions)
    yield ResourceType(
        GROUP,
        "ResourcePoolStatusRequest",
        "resourcepoolstatusrequests",
        "resourcepoolstatusrequest",
        namespaced=False,
        versions=(
            Version(
                "v1alpha3",
                package("v1alpha3"),
                unconditional_update=False,
                delete_returns_object=True,
            ),
        ),
        strategy=PoolStatusRequestStrategy(),
        status=PoolStatusRequestStatusStrategy(),
        columns=columns.POOL_STATUS_REQUEST,
    )


def _tainting(
    kind: str, plural: str, strategy: Strategy, versions: tuple[Version, ...]
) -> ResourceType:
    return ResourceType(
        GROUP,
        kind,
        plural,
        kind.lower(),
        namespaced=False,
        versions=versions,
        strategy=strategy,
        status=ConditionsStrategy(),
        columns=columns.RULE if kind == "DeviceTaintRule" else columns.PATCH,
    )


def _versions(
    kind: str, to_stored: _Convert | None = None, from_stored: _Convert | None = None
) -> tuple[Version, ...]:
    return (
        Version("v1", package("v1"), delete_returns_object=True),
        Version(
            "v1beta2",
            package("v1beta2"),
            deprecation=_deprecated(kind, "v1beta2", "v1.36", "v1.39"),
            delete_returns_object=True,
        ),
        Version(
            "v1beta1",
            package("v1beta1"),
            to_stored,
            from_stored,
            deprecation=_deprecated(kind, "v1beta1", "v1.35", "v1.38"),
            delete_returns_object=True,
        ),
    )


def _rule_versions() -> tuple[Version, ...]:
    return (
        Version("v1", package("v1"), unconditional_update=False),
        Version("v1beta2", package("v1beta2"), delete_returns_object=True),
        Version(
            "v1alpha3",
            package("v1alpha3"),
            deprecation=_deprecated("DeviceTaintRule", "v1alpha3", "v1.36", "v1.39"),
            delete_returns_object=True,
        ),
    )


def _deprecated(kind: str, version: str, since: str, until: str) -> str:
    return f"{GROUP}/{version} {kind} is deprecated in {since}+, unavailable in {until}+"


def _unknown_slice_label(group: str, version: str, kind: str, label: str) -> str:
    return f"field label not supported for {group}/{version}, Kind={kind}: {label}"
