"""What claims and templates may ask for."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.resource.bodies import (
    KEY_TEXT,
    LABEL_TEXT,
    SUBDOMAIN_TEXT,
    body,
    claim_body,
    exactly,
    first_available,
    template_body,
)
from api.resource.writing import Writer, gates
from sully.machinery.compat import Compat

REFERENCE_TEXT = (
    "must be the name of a request in the claim or the name of a request and a subrequest"
    " separated by '/'"
)
QUALIFIED_TEXT = "a fully qualified name must be a domain and a name separated by a slash"
OPAQUE = {"driver": "gpu.example.com", "parameters": {"a": 1}}
CONSTRAINT_TEXT = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are'
    " set"
)


@dataclass(frozen=True)
class Case:
    requests: tuple[dict[str, Any], ...] = (exactly(),)
    devices: dict[str, Any] = field(default_factory=dict)
    want: tuple[str, ...] = ()


def select(*expressions: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": one}} for one in expressions]}


CASES = {
    "nothing": Case(requests=()),
    "minimal": Case(),
    "all devices": Case((exactly(allocationMode="All"),)),
    "class of an alternative missing": Case(
        (first_available({"name": "a", "deviceClassName": ""}),),
        want=("requests[0].firstAvailable[0].deviceClassName: Required value",),
    ),
    "bad name and bad class": Case(
        (exactly("A", deviceClassName="B"),),
        want=(
            f'requests[0].name: Invalid value: "A": {LABEL_TEXT}',
            f'requests[0].exactly.deviceClassName: Invalid value: "B": {SUBDOMAIN_TEXT}',
        ),
    ),
    "selector without cel": Case(
        (exactly(selectors=[{}]),), want=("requests[0].exactly.selectors[0].cel: Required value",)
    ),
    "selector that fits": Case((exactly(**select('device.driver == "x"')),)),
    "selector of the wrong type": Case(
        (exactly(**select("1 + 1")),),
        want=(
            'requests[0].exactly.selectors[0].cel.expression: Invalid value: "1 + 1": must evaluate'
            " to bool or the unknown type, not int",
        ),
    ),
    "selector too long": Case(
        (exactly(**select("x" * 10241)),),
        want=(
            "requests[0].exactly.selectors[0].cel.expression: Too long: may not be more than 10240"
            " bytes",
        ),
    ),
    "selector too costly": Case(
        (
            exactly(
                **select(
                    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c,"
                    " device.attributes.all(d, a != b || c != d))))"
                )
            ),
        ),
        want=(
            "requests[0].exactly.selectors[0].cel.expression: Forbidden: too complex, exceeds cost"
            " limit",
        ),
    ),
    "33 selectors": Case(
        (exactly(**select(*["true"] * 33)),),
        want=("requests[0].exactly.selectors: Too many: 33: must have at most 32 items",),
    ),
    "constraints": Case(
        (exactly("a"), first_available({"name": "s"}, name="b")),
        {
            "constraints": [
                {"matchAttribute": "d.com/x"},
                {"requests": ["a", "b/s", "b"], "distinctAttribute": "d.com/x"},
            ]
        },
    ),
    "empty constraint": Case(
        devices={"constraints": [{}]},
        want=(f"constraints[0]: Required value: {CONSTRAINT_TEXT}",),
    ),
    "constraint without a domain": Case(
        devices={"constraints": [{"matchAttribute": "x"}]},
        want=(f'constraints[0].matchAttribute: Invalid value: "x": {QUALIFIED_TEXT}',),
    ),
    "both attributes: each has a format": Case(
        devices={"constraints": [{"matchAttribute": "d/x", "distinctAttribute": "nonsense"}]},
        want=(f'constraints[0].distinctAttribute: Invalid value: "nonsense": {QUALIFIED_TEXT}',),
    ),
    "references to nothing": Case(
        devices={
            "constraints": [{"requests": ["r", "x", "r/x", "r/x/y"], "matchAttribute": "d/x"}]
        },
        want=tuple(
            f'constraints[0].requests[{i}]: Invalid value: "{name}": {REFERENCE_TEXT}'
            for i, name in ((1, "x"), (2, "r/x"), (3, "r/x/y"))
        ),
    ),
    "same reference twice": Case(
        devices={"constraints": [{"requests": ["r", "r"], "matchAttribute": "d/x"}]},
        want=('constraints[0].requests[1]: Duplicate value: "r"',),
    ),
    "33 constraints": Case(
        devices={"constraints": [{"matchAttribute": "d/x"}] * 33},
        want=("constraints: Too many: 33: must have at most 32 items",),
    ),
    "config": Case(devices={"config": [{"requests": ["r"], "opaque": OPAQUE}]}),
    "config of nothing": Case(devices={"config": [{}]}, want=("config[0].opaque: Required value",)),
    "config without parameters": Case(
        devices={"config": [{"opaque": {"driver": "d"}}]},
        want=("config[0].opaque.parameters: Required value",),
    ),
    "config without driver": Case(
        devices={"config": [{"opaque": OPAQUE | {"driver": ""}}]},
        want=("config[0].opaque.driver: Required value",),
    ),
    "parameters that are not an object": Case(
        devices={"config": [{"opaque": OPAQUE | {"parameters": [1]}}]},
        want=(
            'config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON'
            " object",
        ),
    ),
    "large parameters": Case(
        devices={"config": [{"opaque": OPAQUE | {"parameters": {"x": "y" * 10240}}}]},
        want=("config[0].opaque.parameters: Too long: may not be more than 10240 bytes",),
    ),
    "33 configs": Case(
        devices={"config": [{"opaque": OPAQUE}] * 33},
        want=("config: Too many: 33: must have at most 32 items",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_spec(case: Case) -> None:
    claim = claim_body(*case.requests, **case.devices)
    template = body("ResourceClaimTemplate", {"spec": claim["spec"]}, namespace="ns")

    assert Writer().create(claim).texts == [f"spec.devices.{text}" for text in case.want]
    assert Writer().create(template).texts == [f"spec.spec.devices.{text}" for text in case.want]


DERIVED = gates(DRADerivedAttributes=True)
USED = {"constraints": [{"requests": ["r"], "matchAttribute": "d.com/x"}]}


def derive(name: str, expression: str = "device.driver") -> dict[str, Any]:
    return {"name": name, "expression": expression}


@dataclass(frozen=True)
class Derived:
    attributes: tuple[dict[str, Any], ...]
    want: tuple[str, ...] = ()


UNUSED_TEXT = (
    "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting"
    " this request"
)
DERIVED_CASES = {
    "used, any type": Derived((derive("d.com/x"),)),
    "not used": Derived(
        (derive("d.com/y"),), (f'[0].name: Invalid value: "d.com/y": {UNUSED_TEXT}',)
    ),
    "twice": Derived((derive("d.com/x"), derive("d.com/x")), ('[1]: Duplicate value: "d.com/x"',)),
    "empty": Derived(
        (derive("", ""),), ("[0].name: Required value", "[0].expression: Required value")
    ),
}


@pytest.mark.parametrize("case", DERIVED_CASES.values(), ids=DERIVED_CASES.keys())
def test_derived_attributes(case: Derived) -> None:
    body = claim_body(exactly(derivedAttributes=list(case.attributes)), **USED)

    assert Writer(gates=DERIVED).create(body).texts == [
        f"spec.devices.requests[0].exactly.derivedAttributes{text}" for text in case.want
    ]


ANY_KEY = {"operator": "Equal", "value": "v"}


@pytest.mark.parametrize(("at", "body"), [("spec", claim_body), ("spec.spec", template_body)])
def test_a_toleration_of_any_key_must_exist(at: str, body: Any) -> None:
    sent = body(
        exactly("a", tolerations=[{"operator": "Exists"}, ANY_KEY]),
        first_available({"name": "s", "tolerations": [ANY_KEY]}, name="b"),
    )
    places = (
        f"{at}.devices.requests[0].exactly.tolerations[1].operator",
        f"{at}.devices.requests[1].firstAvailable[0].tolerations[0].operator",
    )
    why = "must be `Exists` when `key` is empty"

    refused = Writer().create(sent)
    accepted = Writer(compat=Compat.KUBERNETES).create(sent)

    assert refused.texts == [f'{place}: Invalid value: "Equal": {why}' for place in places]
    assert accepted.texts == []
    assert not Writer().update(sent, accepted.obj).errors


def test_defaults_of_claims_and_templates() -> None:
    requests = (
        exactly("a", tolerations=[{"key": "k"}]),
        exactly("b", allocationMode="All"),
        first_available({"name": "s", "count": 3}, name="c"),
    )
    want = [
        exactly(
            "a",
            allocationMode="ExactCount",
            count=1,
            tolerations=[{"key": "k", "operator": "Equal"}],
        ),
        exactly("b", allocationMode="All"),
        first_available({"name": "s", "allocationMode": "ExactCount", "count": 3}, name="c"),
    ]

    claim = Writer().create(claim_body(*requests)).spec
    template = Writer().create(template_body(*requests)).spec

    assert claim["devices"]["requests"] == want
    assert template["spec"]["devices"]["requests"] == want


def test_a_new_claim_has_no_status() -> None:
    body = claim_body(exactly())
    body["status"] = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}

    assert Writer().create(body).obj["status"] == {}


def test_the_spec_of_a_claim_never_changes() -> None:
    old = Writer().create(claim_body(exactly())).obj

    assert Writer().update(claim_body(exactly()), old).texts == []
    # Nothing else is reported about the new spec, however wrong it is.
    assert Writer().update(claim_body(exactly("B")), old).texts == [
        "spec: Invalid value: null: field is immutable"
    ]


def test_the_spec_of_a_template_never_changes_and_is_checked_again() -> None:
    old = Writer().create(template_body(exactly())).obj

    same = Writer().update(template_body(exactly()), old)
    changed = Writer().update(template_body(exactly("B")), old)

    assert same.texts == []
    first, second = changed.texts
    assert first.startswith('spec.spec.devices.requests[0].name: Invalid value: "B"')
    # As Go shows its own struct: every field, in its order.
    assert second == (
        'spec: Invalid value: {"Spec":{"Devices":{"Requests":[{"Name":"B","Exactly":'
        '{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":1,'
        '"AdminAccess":null,"Tolerations":null,"Capacity":null,"DerivedAttributes":null},'
        '"FirstAvailable":null}],"Constraints":null,"Config":null}}}: field is immutable'
    )


TEMPLATE_CHANGES: dict[str, tuple[Any, list[str]]] = {
    "an expression that does not compile": (
        exactly(selectors=[{"cel": {"expression": "nope("}}]),
        ["spec.spec.devices.requests[0].exactly.selectors[0].cel.expression", "spec"],
    ),
    "what the schema declares comes last": (
        exactly(allocationMode="Some"),
        ["spec", "spec.spec.devices.requests[0].exactly.allocationMode"],
    ),
}


@pytest.mark.parametrize(
    ("request_body", "want"), TEMPLATE_CHANGES.values(), ids=TEMPLATE_CHANGES.keys()
)
def test_order_of_errors_in_a_changed_template(request_body: Any, want: list[str]) -> None:
    old = Writer().create(template_body(exactly())).obj

    got = Writer().update(template_body(request_body), old)

    assert [text.partition(":")[0] for text in got.texts] == want


def test_no_requests_are_stored_as_null() -> None:
    assert Writer().create(claim_body()).obj["spec"] == {"devices": {"requests": None}}


def test_a_status_in_an_update_of_a_claim_is_ignored() -> None:
    old = Writer().create(claim_body(exactly())).obj | {"status": {"allocation": {"devices": {}}}}
    body = claim_body(exactly()) | {"status": {}}

    assert Writer().update(body, old).obj["status"] == old["status"]


def test_metadata_of_templates() -> None:
    metadata = {
        "name": "n",
        "labels": {"a!": "b"},
        "annotations": {"Fine": "x", "": "y"},
    }

    assert Writer().create(template_body(exactly(), metadata=metadata)).texts == [
        'spec.metadata.annotations: Invalid value: "": name part must be non-empty',
        f'spec.metadata.annotations: Invalid value: "": {KEY_TEXT}',
        f'spec.metadata.labels: Invalid value: "a!": {KEY_TEXT}',
        "spec.metadata.name: Forbidden: cannot be set",
    ]


ADMIN_LABEL = "resource.kubernetes.io/admin-access"
ADMIN_TEXT = (
    f"spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the"
    f" `{ADMIN_LABEL}: true` label on the containing namespace"
)
NAMESPACES: dict[str, tuple[dict[str, dict[str, str]], bool]] = {
    "labelled": ({"ns": {ADMIN_LABEL: "true"}}, True),
    "label is false": ({"ns": {ADMIN_LABEL: "false"}}, False),
    "no label": ({"ns": {}}, False),
    "no namespace": ({}, False),
}


@pytest.mark.parametrize(("namespaces", "allowed"), NAMESPACES.values(), ids=NAMESPACES.keys())
def test_admin_access(namespaces: dict[str, dict[str, str]], allowed: bool) -> None:
    writer = Writer(namespaces=namespaces)
    requests = (exactly("a"), exactly("b", adminAccess=True), exactly("c", adminAccess=True))
    want = [] if allowed else [ADMIN_TEXT]

    assert writer.create(claim_body(*requests)).texts == want
    assert writer.create(template_body(*requests)).texts == want
