"""The validation of our own server, as far as the schema of a definition can express it.

Other servers have no strategies, only the schema. What it cannot express, such as whether an
expression compiles, readers of the object check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sully.api.resource.selectors import EXPRESSION_MAX, SELECTORS_MAX
from sully.api.resource.validation_conditions import CONDITIONS_MAX
from sully.api.resource.validation_devices import TEXT_MAX as ATTRIBUTE_MAX
from sully.api.resource.validation_rules import PATCH_VALUES_MAX
from sully.api.resource.validation_taints import DESCRIPTION_MAX, TAINTS_MAX
from sully.api.sully.policies import LONGEST_DELAY, RULES_MAX
from sully.api.sully.validation import CAUSES_MAX, CHANGES_MAX, CLAIMS_MAX, DEVICES_MAX, TEXT_MAX

Obj = dict[str, Any]

_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LABEL_KEY: Obj = {
    "minLength": 1,
    "maxLength": 317,
    "pattern": f"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_NAME}$",
}
_LABEL_VALUE: Obj = {"maxLength": 63, "pattern": f"^({_NAME})?$"}
_NOT_EMPTY: Obj = {"minLength": 1}
_DELAY: Obj = {"minimum": 0, "maximum": LONGEST_DELAY}
_DEVICE: Obj = {"pattern": "^[^/]+/.+/[^/]+$"}


def _rule(rule: str, message: str) -> Obj:
    return {"x-kubernetes-validations": [{"rule": rule, "message": message}]}


def _size(name: str) -> str:
    return f"(has(self.{name}) ? self.{name}.size() : 0)"


_IMMUTABLE = _rule("self == oldSelf", "what happened cannot be changed")

LIMITS: Mapping[str, Obj] = {
    # ResourceSlicePatch
    "DevicePatch": _rule(
        f"{_size('attributes')} + {_size('capacity')} <= {PATCH_VALUES_MAX}",
        f"the total number of attributes and capacities must not exceed {PATCH_VALUES_MAX}",
    ),
    "DevicePatch.attributes": {"maxProperties": PATCH_VALUES_MAX},
    "DevicePatch.capacity": {"maxProperties": PATCH_VALUES_MAX},
    "DevicePatch.taints": {"maxItems": TAINTS_MAX},
    "DevicePatchFilter.selectors": {"maxItems": SELECTORS_MAX},
    "NullableDeviceAttribute": {"minProperties": 1, "maxProperties": 1},
    "NullableDeviceAttribute.string": {"maxLength": ATTRIBUTE_MAX},
    "NullableDeviceAttribute.version": {"maxLength": ATTRIBUTE_MAX},
    "CELDeviceSelector.expression": {"maxLength": EXPRESSION_MAX},
    "DeviceTaint.description": {"maxLength": DESCRIPTION_MAX},
    "DeviceTaint.evictionsPerSecond": {"minimum": 1},
    "DeviceTaint.key": _LABEL_KEY,
    "DeviceTaint.value": _LABEL_VALUE,
    "ResourceSlicePatchStatus.conditions": {"maxItems": CONDITIONS_MAX},
    # EvictionRecord
    "EvictionRecordSpec": _IMMUTABLE,
    "EvictionRecordSpec.causes": {"minItems": 1, "maxItems": CAUSES_MAX},
    "EvictionRecordSpec.claims": {"maxItems": CLAIMS_MAX},
    "EvictionRecordSpec.devices": {"maxItems": DEVICES_MAX},
    "EvictedPod.name": _NOT_EMPTY,
    "EvictedPod.uid": _NOT_EMPTY,
    "EvictionCause.description": {"maxLength": TEXT_MAX},
    "EvictionCause.device": _DEVICE,
    "EvictionCause.effect": _NOT_EMPTY,
    "EvictionCause.key": _LABEL_KEY,
    "EvictionCause.name": _NOT_EMPTY,
    "EvictionCause.value": _LABEL_VALUE,
    # TaintRecord
    "TaintRecordSpec": _IMMUTABLE,
    "TaintRecordSpec.description": {"maxLength": TEXT_MAX},
    "TaintRecordRule.name": _NOT_EMPTY,
    "TaintRecordRule.uid": _NOT_EMPTY,
    "TaintRecordStatus.evicted": {"minimum": 0},
    "TaintRecordStatus.changes": {"maxItems": CHANGES_MAX},
    "TaintChange.what": {"minLength": 1, "maxLength": TEXT_MAX},
    # ClusterTaintPolicy
    "ClusterTaintPolicySpec.rules": {"minItems": 1, "maxItems": RULES_MAX},
    "ClusterTaintPolicyRule.setAfterSeconds": _DELAY,
    "ClusterTaintPolicyRule.clearAfterSeconds": _DELAY,
    "ClusterTaintPolicyCondition.type": _NOT_EMPTY,
    "ClusterTaintPolicyTaint.key": _LABEL_KEY,
    "ClusterTaintPolicyTaint.value": _LABEL_VALUE,
}
"""Additional limits of a schema, by type or by type and field."""
