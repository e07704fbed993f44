"""The validation of our own server, as far as the schema of a definition can express it.

Other servers have no strategies, only the schema. What it cannot express, such as whether an
expression compiles, readers of the object check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sully.api.cluster.types import HEALTH_KEYS
from sully.api.core.checks import DRIVER_MAX
from sully.api.resource.eviction_rate import MAX_COUNT
from sully.api.resource.selectors import EXPRESSION_MAX, SELECTORS_MAX
from sully.api.resource.validation.conditions import CONDITIONS_MAX
from sully.api.resource.validation.devices import ATTRIBUTE_VALUES_MAX, SEMVER_PATTERN
from sully.api.resource.validation.devices import TEXT_MAX as ATTRIBUTE_MAX
from sully.api.resource.validation.names import IDENTIFIER_MAX, POOL_MAX
from sully.api.resource.validation.rules import PATCH_VALUES_MAX
from sully.api.resource.validation.taints import DESCRIPTION_MAX, TAINTS_MAX
from sully.api.sully.checks import FLAPS_MAX, TEXT_MAX
from sully.api.sully.durations import PATTERN as DURATION
from sully.api.sully.health import (
    IDENTITY_MAX,
    LONGEST_LEASE,
    NO_IDENTITY,
    PCI_PATTERN,
    REASONS_MAX,
    REPORTED_MAX,
    WRONG_NAME,
)
from sully.api.sully.maintenance_validation import (
    BY_DEFAULT,
    NEEDS_TIMEOUT,
    NEEDS_WAIT,
    NOT_LATER,
    NOT_UNDONE,
    REASON_MAX,
    TIMEOUT_OF_JOB,
    TWO_ENDS,
)
from sully.api.sully.policies.cluster import LONGEST_DELAY, RULES_MAX
from sully.api.sully.policies.device_validation import (
    CRITERIA,
    FAULTS,
    IDENTITIES_MAX,
    INCOMPLETE,
    KINDS_OF_SOURCES,
    LIMITS_MAX,
    NO_APPROVAL,
    NO_CRITERIA,
    POLICY_EFFECTS,
    SEVERITIES,
    SOURCES_MAX,
    STEP_LESS,
    STEP_WEAKER,
    STEPS_MAX,
    SUPPRESS_MAX,
    VALUES_MAX,
)
from sully.api.sully.policies.prometheus_validation import DEFAULTS as PROMETHEUS
from sully.api.sully.policies.prometheus_validation import QUERY_MAX, TIMEOUT_TOO_LONG, URL_MAX
from sully.api.sully.policies.proof_validation import ATTEMPTS_MAX, PARALLELISM_MAX
from sully.api.sully.policies.proof_validation import DEFAULTS as PROOF_DEFAULTS
from sully.api.sully.record_validation import CAUSES_MAX, CHANGES_MAX, CLAIMS_MAX, DEVICES_MAX
from sully.machinery.formats.names import DNS_LABEL, DNS_SUBDOMAIN

Obj = dict[str, Any]

LABELS_MAX = 64
"""Of a selector; our own server has no limit, but the cost of rules needs one."""
_QUALIFIED_TEXT = "a name must be a domain and an identifier separated by a slash"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_CASELESS_LABEL = "[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_CASELESS_SUBDOMAIN = rf"{_CASELESS_LABEL}(\.{_CASELESS_LABEL})*"
_IDENTIFIER = f"[A-Za-z_][A-Za-z0-9_]{{0,{IDENTIFIER_MAX - 1}}}"
_KEY_PATTERN = f"^({DNS_SUBDOMAIN}/)?{_NAME}$"
_VALUE_PATTERN = f"^({_NAME})?$"
_LABEL_KEY: Obj = {"minLength": 1, "maxLength": 317, "pattern": _KEY_PATTERN}
_LABEL_VALUE: Obj = {"maxLength": 63, "pattern": _VALUE_PATTERN}
_NOT_EMPTY: Obj = {"minLength": 1}
_DELAY: Obj = {"minimum": 0, "maximum": LONGEST_DELAY}
_DEVICE: Obj = {"pattern": "^[^/]+/.+/[^/]+$"}
_SUBDOMAIN: Obj = {"minLength": 1, "maxLength": 253, "pattern": f"^{DNS_SUBDOMAIN}$"}
_DRIVER: Obj = {"minLength": 1, "maxLength": DRIVER_MAX, "pattern": f"^{_CASELESS_SUBDOMAIN}$"}
_POOL: Obj = {
    "minLength": 1,
    "maxLength": POOL_MAX,
    "pattern": f"^{DNS_SUBDOMAIN}(/{DNS_SUBDOMAIN})*$",
}
_VERSION: Obj = {"maxLength": ATTRIBUTE_MAX, "pattern": f"^{SEMVER_PATTERN}$"}
_LABEL: Obj = {"minLength": 1, "maxLength": 63, "pattern": f"^{DNS_LABEL}$"}


def _rules(*rules: tuple[str, str]) -> Obj:
    listed = [{"rule": rule, "message": message} for rule, message in rules]
    return {"x-kubernetes-validations": listed}


def _rule(rule: str, message: str) -> Obj:
    return _rules((rule, message))


def _bytes(most: int) -> Obj:
    """Limit a text in bytes; the length of a schema counts characters."""
    text = f"may not be more than {most} bytes"
    return {"maxLength": most, **_rule(f"bytes(self).size() <= {most}", text)}


def _names(domain: str, text: str) -> tuple[str, str]:
    """Return the rule for the names of attributes or capacities: a domain and an identifier."""
    within = f"name.indexOf('/') <= {DRIVER_MAX}"
    pattern = _escaped(f"^{domain}/{_IDENTIFIER}$")
    return f"self.all(name, {within} && name.matches('{pattern}'))", text


def _escaped(pattern: str) -> str:
    """Write a pattern as a literal of CEL."""
    return pattern.replace("\\", "\\\\")


def _each(item: Obj, most: int) -> Obj:
    return {"maxItems": most, "items": {"type": "string", **item}}


def _size(name: str) -> str:
    return f"(has(self.{name}) ? self.{name}.size() : 0)"


def _count(names: Sequence[str]) -> str:
    """Count the fields of an object that are set."""
    return " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in names)


def _follows(test: str, message: str) -> tuple[str, str]:
    """Return the rule for each step `{step}` of a policy, and the one before, `{before}`."""
    numbers = list(range(1, STEPS_MAX))
    text = test.format(step="self[i]", before="self[i - 1]")
    return f"{numbers}.all(i, i >= self.size() || {text})", message


def _rank(step: str, name: str, names: Sequence[str]) -> str:
    """Return the position of the value of a field of a step."""
    ranks = ", ".join(f"'{value}': {place}" for place, value in enumerate(names))
    return f"{{{{{ranks}}}}}[has({step}.{name}) ? {step}.{name} : '{names[0]}']"


def _after(step: str) -> str:
    return f"duration(has({step}.after) ? {step}.after : '0s')"


_SEVERITY, _SEVERITY_BEFORE = (
    _rank(step, "minSeverity", SEVERITIES) for step in ("{step}", "{before}")
)
_STEPS = (
    _follows(
        f"{_rank('{step}', 'effect', POLICY_EFFECTS)}"
        f" > {_rank('{before}', 'effect', POLICY_EFFECTS)}",
        STEP_WEAKER,
    ),
    _follows(f"{_SEVERITY} >= {_SEVERITY_BEFORE}", f"minSeverity {STEP_LESS}"),
    _follows(
        f"{_SEVERITY} != {_SEVERITY_BEFORE} || {_after('{step}')} >= {_after('{before}')}",
        f"after {STEP_LESS}",
    ),
)
_DURATION: Obj = {"maxLength": 64, "pattern": DURATION}
_AMOUNT: Obj = {"minimum": 0, "pattern": "^([0-9]{1,2}|100)%$"}
_SOME: Obj = {"minimum": 1, "pattern": "^([1-9][0-9]?|100)%$"}
_SOME_TIME: Obj = {
    **_DURATION,
    **_rule("duration(self) > duration('0s')", "must be greater than 0s"),
}
_NODE = "(has(self.nodeName) ? self.nodeName : '')"
_REPORT_NAME = (
    "has(self.spec.nodeName) ? self.metadata.name in [self.spec.nodeName, self.spec.nodeName + '.'"
    " + self.spec.reporter] : self.metadata.name == self.spec.reporter"
)
_TAINTS = "has(self.sources) && has(self.taint) && has(self.steps)"
_SOME_TAINTS = _TAINTS.replace("&&", "||")
_IMMUTABLE = _rule("self == oldSelf", "what happened cannot be changed")

LIMITS: Mapping[str, Obj] = {
    # ResourceSlicePatch
    "DevicePatch": _rule(
        f"{_size('attributes')} + {_size('capacity')} <= {PATCH_VALUES_MAX}",
        f"the total number of attributes and capacities must not exceed {PATCH_VALUES_MAX}",
    ),
    "DevicePatch.attributes": {
        "maxProperties": PATCH_VALUES_MAX,
        **_rules(_names(DNS_SUBDOMAIN, _QUALIFIED_TEXT)),
    },
    "DevicePatch.capacity": {
        "maxProperties": PATCH_VALUES_MAX,
        **_rules(_names(_CASELESS_SUBDOMAIN, _QUALIFIED_TEXT)),
    },
    "DevicePatch.taints": {"maxItems": TAINTS_MAX},
    "DevicePatchFilter.device": _LABEL,
    "DevicePatchFilter.deviceClassName": _SUBDOMAIN,
    "DevicePatchFilter.driver": _DRIVER,
    "DevicePatchFilter.pool": _POOL,
    "DevicePatchFilter.selectors": {"maxItems": SELECTORS_MAX},
    "DeviceSelector": {"required": ["cel"]},
    "NullableDeviceAttribute": {"minProperties": 1, "maxProperties": 1},
    "NullableDeviceAttribute.string": _bytes(ATTRIBUTE_MAX),
    "NullableDeviceAttribute.version": _VERSION,
    **{
        f"NullableDeviceAttribute.{name}": {"minItems": 1, "maxItems": ATTRIBUTE_VALUES_MAX}
        for name in ("ints", "bools")
    },
    "NullableDeviceAttribute.strings": {
        "minItems": 1,
        **_each(_bytes(ATTRIBUTE_MAX), ATTRIBUTE_VALUES_MAX),
    },
    "NullableDeviceAttribute.versions": {"minItems": 1, **_each(_VERSION, ATTRIBUTE_VALUES_MAX)},
    # As on our own server, where an amount is never absent.
    "DeviceCapacity.value": {"default": "0"},
    "CELDeviceSelector.expression": {"minLength": 1, "maxLength": EXPRESSION_MAX},
    "DeviceTaint.description": _bytes(DESCRIPTION_MAX),
    "DeviceTaint.evictionsPerSecond": {"minimum": 1},
    "DeviceTaint.key": _LABEL_KEY,
    "DeviceTaint.value": _LABEL_VALUE,
    "ResourceSlicePatchStatus.conditions": {"maxItems": CONDITIONS_MAX},
    # EvictionRecord
    "EvictionRecordSpec": _IMMUTABLE,
    "EvictionRecordSpec.causes": {"minItems": 1, "maxItems": CAUSES_MAX},
    "EvictionRecordSpec.claims": _each(_SUBDOMAIN, CLAIMS_MAX),
    "EvictionRecordSpec.devices": _each(_DEVICE, DEVICES_MAX),
    "EvictedPod.name": _SUBDOMAIN,
    "EvictedPod.uid": _NOT_EMPTY,
    "EvictionCause.description": _bytes(TEXT_MAX),
    "EvictionCause.device": _DEVICE,
    "EvictionCause.effect": _NOT_EMPTY,
    "EvictionCause.key": _LABEL_KEY,
    "EvictionCause.name": _SUBDOMAIN,
    "EvictionCause.value": _LABEL_VALUE,
    # TaintRecord
    "TaintRecordSpec": _IMMUTABLE,
    "TaintRecordSpec.description": _bytes(TEXT_MAX),
    "TaintRecordRule.name": _SUBDOMAIN,
    "TaintRecordRule.uid": _NOT_EMPTY,
    "TaintRecordStatus.evicted": {"minimum": 0},
    "TaintRecordStatus.changes": {"maxItems": CHANGES_MAX},
    "TaintChange.what": {"minLength": 1, **_bytes(TEXT_MAX)},
    "TaintChange.by": _bytes(TEXT_MAX),
    # ClusterTaintPolicy
    "ClusterTaintPolicySpec.rules": {"minItems": 1, "maxItems": RULES_MAX},
    "ClusterTaintPolicyRule.setAfterSeconds": _DELAY,
    "ClusterTaintPolicyRule.clearAfterSeconds": _DELAY,
    "ClusterTaintPolicyCondition.type": _LABEL_KEY,
    "ClusterTaintPolicyCondition.orStatuses": _each({"enum": ["True", "False", "Unknown"]}, 3),
    "ClusterTaintPolicySpec.maxUnavailable": _AMOUNT,
    "ClusterTaintPolicyFlaps.count": {"minimum": 2, "maximum": FLAPS_MAX},
    "ClusterTaintPolicyFlaps.within": _DURATION,
    "ClusterTaintPolicyTaint.key": {
        **_LABEL_KEY,
        **_rule(f"!(self in {sorted(HEALTH_KEYS)})", "is set by the hub from the cluster's health"),
    },
    "ClusterTaintPolicyTaint.value": _LABEL_VALUE,
    # Proofs of devices
    "DeviceProof": _rule(
        "has(self.job) == (self.type == 'Job')", "job must be set exactly if the type is Job"
    ),
    "DeviceProofJob.namespace": _LABEL,
    "DeviceProofJob.deviceClassName": _SUBDOMAIN,
    "DeviceProofJob.timeout": {"default": PROOF_DEFAULTS["timeout"], **_DURATION},
    "DeviceProofJob.retryAfter": {"default": PROOF_DEFAULTS["retryAfter"], **_DURATION},
    "DeviceProofJob.attempts": {
        "default": PROOF_DEFAULTS["attempts"],
        "minimum": 1,
        "maximum": ATTEMPTS_MAX,
    },
    "DeviceProofJob.parallelism": {
        "default": PROOF_DEFAULTS["parallelism"],
        "minimum": 1,
        "maximum": PARALLELISM_MAX,
    },
    # DeviceTaintPolicy
    "DeviceTaintPolicySpec": _rules(
        (f"has(self.suppress) || ({_TAINTS})", INCOMPLETE),
        (f"!({_SOME_TAINTS}) || ({_TAINTS})", INCOMPLETE),
        ("!(has(self.suppress) && self.mode == 'RequireApproval')", NO_APPROVAL),
    ),
    "DeviceTaintPolicySpec.mode": {"default": "DryRun"},
    "DeviceTaintPolicySpec.identityAttribute": {"default": "uuid", **_LABEL_KEY},
    "DeviceTaintPolicySpec.onDelete": {"default": "Delete"},
    "DeviceTaintPolicySpec.partitions": {"default": "None"},
    "DeviceTaintPolicySpec.sources": {"minItems": 1, "maxItems": SOURCES_MAX},
    "DeviceTaintPolicySpec.steps": {"minItems": 1, "maxItems": STEPS_MAX, **_rules(*_STEPS)},
    "DeviceTaintPolicySpec.suppress": {"minItems": 1, "maxItems": SUPPRESS_MAX},
    "DeviceTaintPolicySuppression.key": _LABEL_KEY,
    "DeviceTaintPolicySuppression.value": _LABEL_VALUE,
    "DeviceTaintPolicySuppression.expression": {"maxLength": EXPRESSION_MAX},
    "DeviceTaintPolicySuppression.reason": _bytes(TEXT_MAX),
    "DeviceTaintPolicySpec.limits": {"maxItems": LIMITS_MAX},
    "DeviceTaintPolicySpec.holdFor": _DURATION,
    "DeviceTaintPolicySpec.clearAfter": _DURATION,
    "DeviceTaintPolicySelector": _rules(
        (f"(has(self.matchAll) && self.matchAll) || {_count(CRITERIA)} > 0", NO_CRITERIA),
        (
            f"!(has(self.matchAll) && self.matchAll) || {_count(CRITERIA)} == 0",
            "matchAll must not be set with other criteria",
        ),
    ),
    "DeviceTaintPolicySelector.driver": _DRIVER,
    "DeviceTaintPolicySelector.pool": _POOL,
    "DeviceTaintPolicySelector.device": _LABEL,
    "DeviceTaintPolicySelector.deviceClassName": _SUBDOMAIN,
    "DeviceTaintPolicySelector.selectors": {"maxItems": SELECTORS_MAX},
    "DeviceTaintPolicySelector.identities": _each({"maxLength": ATTRIBUTE_MAX}, IDENTITIES_MAX),
    "DeviceTaintPolicySource": _rule(
        f"{_count(KINDS_OF_SOURCES)} == 1",
        f"must have exactly one of {', '.join(KINDS_OF_SOURCES)}",
    ),
    "DeviceTaintPolicySource.name": _LABEL,
    "DeviceTaintPolicySource.severity": {"default": "Major"},
    "DeviceTaintPolicySource.notPublished": {"enum": [True]},
    "DeviceTaintPolicyDriverTaint.key": _LABEL_KEY,
    "DeviceTaintPolicyDriverTaint.value": _LABEL_VALUE,
    "DeviceTaintPolicyDriverTaint.expression": {"maxLength": EXPRESSION_MAX},
    "DeviceTaintPolicyAttributes.expression": {"minLength": 1, "maxLength": EXPRESSION_MAX},
    "DeviceTaintPolicyCondition.type": _LABEL_KEY,
    "DeviceTaintPolicyHealth.statuses": _each({"enum": list(FAULTS)}, len(FAULTS)),
    "DeviceTaintPolicyHealth.keys": _each({"maxLength": 317}, VALUES_MAX),
    "DeviceTaintPolicyHealth.values": _each({"maxLength": 317}, VALUES_MAX),
    "DeviceTaintPolicyPrometheus.url": {
        "minLength": 1,
        "maxLength": URL_MAX,
        "pattern": "^https?://[^/?#@]+(/[^?#]*)?$",
    },
    "DeviceTaintPolicyPrometheus.query": {"minLength": 1, "maxLength": QUERY_MAX},
    "DeviceTaintPolicyPrometheus.interval": {"default": PROMETHEUS["interval"], **_DURATION},
    "DeviceTaintPolicyPrometheus.timeout": {
        "default": PROMETHEUS["timeout"],
        **_DURATION,
        **_rule("duration(self) <= duration('60s')", TIMEOUT_TOO_LONG),
    },
    "DeviceTaintPolicyPrometheus.labels": {"maxProperties": 4},
    "DeviceTaintPolicyNodeTaint.key": _LABEL_KEY,
    "DeviceTaintPolicyNodeTaint.value": _LABEL_VALUE,
    "DeviceTaintPolicyTaint.key": _LABEL_KEY,
    "DeviceTaintPolicyTaint.value": _LABEL_VALUE,
    "DeviceTaintPolicyStep.after": _DURATION,
    "DeviceTaintPolicyStep.minSeverity": {"default": "Minor"},
    "DeviceTaintPolicyFlaps.count": {"minimum": 2, "maximum": FLAPS_MAX},
    "DeviceTaintPolicyFlaps.within": _DURATION,
    "DeviceTaintPolicyLimit": _rules(
        ("(self.scope == 'Class') == has(self.deviceClassName)", "deviceClassName is for Class"),
        ("(self.scope == 'Attribute') == has(self.attribute)", "attribute is for Attribute"),
    ),
    "DeviceTaintPolicyLimit.deviceClassName": _SUBDOMAIN,
    "DeviceTaintPolicyLimit.attribute": _LABEL_KEY,
    "DeviceTaintPolicyLimit.maxUnavailable": _AMOUNT,
    "DeviceTaintPolicyStorm.devices": _AMOUNT,
    "DeviceTaintPolicyStorm.within": _DURATION,
    # DeviceMaintenance
    "DeviceMaintenanceSpec": _rules(
        ("!(has(self.end) && has(self.duration))", f"end {TWO_ENDS}"),
        ("!has(self.end) || self.end > self.start", f"end {NOT_LATER}"),
        (
            "!has(self.drain.maxUnavailable)"
            " || duration(self.rolling.waitForReady) > duration('0s')",
            f"drain.maxUnavailable {NEEDS_WAIT}",
        ),
        (
            "!(has(oldSelf.cancelled) && oldSelf.cancelled)"
            " || (has(self.cancelled) && self.cancelled)",
            NOT_UNDONE,
        ),
    ),
    "DeviceMaintenanceSpec.identityAttribute": {"default": "uuid", **_LABEL_KEY},
    "DeviceMaintenanceSpec.reason": _bytes(REASON_MAX),
    "DeviceMaintenanceSpec.duration": _SOME_TIME,
    "DeviceMaintenanceSpec.closeBefore": _DURATION,
    "DeviceMaintenanceSpec.rolling": {"default": BY_DEFAULT["rolling"]},
    "DeviceMaintenanceSpec.drain": {"default": BY_DEFAULT["drain"]},
    "DeviceMaintenanceRolling.by": {"default": BY_DEFAULT["rolling"]["by"]},
    "DeviceMaintenanceRolling.maxUnavailable": {
        "default": BY_DEFAULT["rolling"]["maxUnavailable"],
        **_SOME,
    },
    "DeviceMaintenanceRolling.waitForReady": {
        "default": BY_DEFAULT["rolling"]["waitForReady"],
        **_DURATION,
    },
    "DeviceMaintenanceDrain": _rule(
        "self.then != 'NoExecute' || has(self.timeout)", f"timeout: {NEEDS_TIMEOUT}"
    ),
    "DeviceMaintenanceDrain.mode": {"default": BY_DEFAULT["drain"]["mode"]},
    "DeviceMaintenanceDrain.rate": {
        "default": BY_DEFAULT["drain"]["rate"],
        "pattern": "^[0-9]{1,4}(/[0-9]{0,5}[smh])?$",
    },
    "DeviceMaintenanceDrain.burst": {"minimum": 1, "maximum": MAX_COUNT},
    "DeviceMaintenanceDrain.maxUnavailable": _SOME,
    "DeviceMaintenanceDrain.timeout": _SOME_TIME,
    "DeviceMaintenanceDrain.then": {"default": BY_DEFAULT["drain"]["then"]},
    "DeviceMaintenanceHook": _rules(
        ("has(self.job) == (self.type == 'Job')", "job must be set exactly if the type is Job"),
        ("!(has(self.timeout) && self.type == 'Job')", f"timeout: {TIMEOUT_OF_JOB}"),
    ),
    "DeviceMaintenanceHook.timeout": _SOME_TIME,
    # DeviceHealth
    "DeviceHealth": _rule(_REPORT_NAME, f"metadata.name {WRONG_NAME}"),
    "DeviceHealthSpec": _rules(
        ("self.reporter == oldSelf.reporter", "the reporter cannot be changed"),
        (f"{_NODE} == {_NODE.replace('self', 'oldSelf')}", "the node cannot be changed"),
    ),
    "DeviceHealthSpec.nodeName": _SUBDOMAIN,
    "DeviceHealthSpec.reporter": _LABEL,
    "DeviceHealthSpec.leaseDurationSeconds": {"minimum": 1, "maximum": LONGEST_LEASE},
    "DeviceHealthSpec.bootID": _bytes(IDENTITY_MAX),
    "DeviceHealthSpec.message": _bytes(TEXT_MAX),
    "DeviceHealthSpec.devices": {"maxItems": REPORTED_MAX},
    "ReportedDevice": _rule(
        "has(self.uuid) || has(self.pciAddress) || has(self.device)", NO_IDENTITY
    ),
    "ReportedDevice.uuid": {"minLength": 1, **_bytes(IDENTITY_MAX)},
    "ReportedDevice.pciAddress": {"maxLength": 16, "pattern": f"^{PCI_PATTERN}$"},
    "ReportedDevice.index": {"minimum": 0},
    "ReportedDevice.device": _DEVICE,
    "ReportedDevice.model": _bytes(IDENTITY_MAX),
    "ReportedDevice.reasons": {"maxItems": REASONS_MAX},
    "HealthReason.key": _LABEL_KEY,
    "HealthReason.value": _LABEL_VALUE,
    "HealthReason.message": _bytes(TEXT_MAX),
    "HealthReason.count": {"minimum": 0},
    "LabelSelector.matchLabels": {
        "maxProperties": LABELS_MAX,
        "additionalProperties": {"type": "string", **_LABEL_VALUE},
        **_rule(f"self.all(key, key.matches('{_escaped(_KEY_PATTERN)}'))", "invalid label key"),
    },
    "LabelSelector.matchExpressions": {"maxItems": LABELS_MAX},
    "LabelSelectorRequirement": _rule(
        "self.operator in ['In', 'NotIn'] == (has(self.values) && self.values.size() > 0)",
        "values must be specified for the operators In and NotIn, and only for them",
    ),
    "LabelSelectorRequirement.key": _LABEL_KEY,
    "LabelSelectorRequirement.operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
    "LabelSelectorRequirement.values": _each(_LABEL_VALUE, LABELS_MAX),
}
"""Additional limits of a schema, by type or by type and field."""

GATED: Mapping[str, str] = {
    f"NullableDeviceAttribute.{name}": "DRAListTypeAttributes"
    for name in ("ints", "bools", "strings", "versions")
}
"""Fields that are dropped while a feature gate is off."""
