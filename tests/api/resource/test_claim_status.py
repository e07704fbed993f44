"""The status of claims: allocation, consumers, reports of drivers."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.resource.bodies import CASELESS_TEXT, SUBDOMAIN_TEXT, claim_body, consumer, exactly, result
from api.resource.writing import Writer
from sully.machinery.compat import Compat

SHARE = "11111111-2222-4333-8444-555555555555"
TIME = "2026-01-01T00:00:00Z"


def allocation(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"devices": {"results": list(results) or [result()]}, **more}


def report(**more: Any) -> dict[str, Any]:
    return {"driver": "gpu.example.com", "pool": "p", "device": "d", **more}


def condition(**more: Any) -> dict[str, Any]:
    usual = {"type": "Ready", "status": "True", "reason": "R", "message": ""}
    return {**usual, "lastTransitionTime": TIME, **more}


def stored(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    body = claim_body(exactly())
    body["metadata"] |= metadata
    return Writer().create(body).obj | {"status": status or {}}


def send(status: dict[str, Any], old: dict[str, Any], writer: Writer | None = None) -> Any:
    body = claim_body(exactly()) | {"status": status}
    return (writer or Writer()).update(body, old, status=True)


@dataclass(frozen=True)
class Case:
    status: dict[str, Any]
    want: tuple[str, ...] = ()
    old: dict[str, Any] = field(default_factory=dict)


AT = "allocation.devices.results[0]"
CASES = {
    "empty allocation": Case({"allocation": {}}),
    "allocation": Case({"allocation": allocation()}),
    "the same device twice": Case({"allocation": allocation(result(), result())}),
    "allocated and reserved": Case({"allocation": allocation(), "reservedFor": [consumer()]}),
    "bad result": Case(
        {"allocation": allocation(result(pool="A/b", driver=""))},
        (
            f"{AT}.driver: Required value",
            f'{AT}.pool: Invalid value: "A": segment 0: {SUBDOMAIN_TEXT}',
        ),
    ),
    "result with a pool that has an empty part": Case(
        {"allocation": allocation(result(pool="a//b", driver="D_"))},
        (
            f'{AT}.driver: Invalid value: "D_": {CASELESS_TEXT}',
            f'{AT}.pool: Invalid value: "a//b": segment 1: must not be empty',
        ),
    ),
    "result without a pool": Case(
        {"allocation": allocation(result(pool=""))}, (f"{AT}.pool: Required value",)
    ),
    "65 configs": Case(
        {
            "allocation": {
                "devices": {
                    "config": [{"source": "FromClass", "opaque": {"driver": "d", "parameters": {}}}]
                    * 65
                }
            }
        },
        ("allocation.devices.config: Too many: 65: must have at most 64 items",),
    ),
    "config of no source": Case(
        {"allocation": {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {}}}]}}},
        ("allocation.devices.config[0].source: Required value",),
    ),
    "node selector without terms": Case(
        {"allocation": allocation(nodeSelector={"nodeSelectorTerms": []})},
        (
            "allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one"
            " node selector term",
        ),
    ),
    "allocation changed": Case(
        {"allocation": allocation(result(device="e"))},
        ("allocation: Invalid value: null: field cannot be modified once set",),
        old={"allocation": allocation()},
    ),
    "allocation kept": Case({"allocation": allocation()}, old={"allocation": allocation()}),
    "allocation removed": Case({}, old={"allocation": allocation()}),
    "reserved without allocation": Case(
        {"reservedFor": [consumer()]},
        ("reservedFor: Forbidden: may not be specified when `allocated` is not set",),
    ),
    "incomplete consumer": Case(
        {"allocation": allocation(), "reservedFor": [{}]},
        (
            "reservedFor[0].resource: Required value",
            "reservedFor[0].name: Required value",
            "reservedFor[0].uid: Required value",
        ),
    ),
    "same consumer twice": Case(
        {"allocation": allocation(), "reservedFor": [consumer(), consumer()]},
        ('reservedFor[1]: Duplicate value: {"resource":"pods","name":"pod-u1","uid":"u1"}',),
    ),
    "257 consumers": Case(
        {"allocation": allocation(), "reservedFor": [consumer(f"u{i}") for i in range(257)]},
        ("reservedFor: Too many: 257: must have at most 256 items",),
    ),
    "report": Case(
        {
            "allocation": allocation(),
            "devices": [
                report(
                    conditions=[condition()],
                    data={"a": 1},
                    networkData={"interfaceName": "eth0", "ips": ["10.0.0.1/24", "fd00::1/64"]},
                )
            ],
        }
    ),
    "report about another device": Case(
        {"allocation": allocation(), "devices": [report(device="e")]},
        (
            'devices[0]: Invalid value: {"Driver":"gpu.example.com","Pool":"p","Device":"e",'
            '"ShareID":""}: must be an allocated device in the claim',
        ),
    ),
    "report about a share": Case(
        {"allocation": allocation(result(shareID=SHARE)), "devices": [report(shareID=SHARE)]}
    ),
    "report about a share of nothing": Case(
        {"allocation": allocation(), "devices": [report(shareID=SHARE)]},
        (
            'devices[0]: Invalid value: {"Driver":"gpu.example.com","Pool":"p","Device":"d",'
            f'"ShareID":"{SHARE}"}}: must be an allocated device in the claim',
        ),
    ),
    "report with many conditions, one of them bad": Case(
        {
            "allocation": allocation(),
            "devices": [
                report(
                    conditions=[condition(type=f"c{number}") for number in range(8)]
                    + [condition(status="")]
                )
            ],
        },
        (
            "devices[0].conditions: Too many: 9: must have at most 8 items",
            "devices[0].conditions[8].status: Required value",
        ),
    ),
    "report with bad data": Case(
        {
            "allocation": allocation(),
            "devices": [report(data=[1], networkData={"ips": ["10.0.0.1"]})],
        },
        (
            'devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object',
            'devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid address in'
            " CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
        ),
    ),
    "conditions are checked before the allocation": Case(
        {
            "allocation": allocation(result(driver="x" * 64, request="other")),
            "devices": [report(driver="x", conditions=[{"status": "Maybe"}])],
        },
        (
            'devices[0]: Invalid value: {"Driver":"x","Pool":"p","Device":"d","ShareID":""}: must'
            " be an allocated device in the claim",
            "devices[0].conditions[0].type: Required value: is required",
            'devices[0].conditions[0].status: Unsupported value: "Maybe": supported values:'
            ' "False", "True", "Unknown"',
            "devices[0].conditions[0].lastTransitionTime: Required value",
            "devices[0].conditions[0].reason: Required value",
            f'{AT}.request: Invalid value: "other": must be the name of a request in the claim or'
            " the name of a request and a subrequest separated by '/'",
            f"{AT}.driver: Too long: may not be more than 63 characters",
        ),
    ),
    "nine conditions": Case(
        {
            "allocation": allocation(),
            "devices": [report(conditions=[condition(type=f"T{i}") for i in range(9)])],
        },
        ("devices[0].conditions: Too many: 9: must have at most 8 items",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_validation(case: Case) -> None:
    got = send(case.status, stored(case.old))

    assert got.texts == [f"status.{text}" for text in case.want]


def test_what_the_schema_declares_is_last_in_the_order_of_its_fields() -> None:
    bad_network = {"hardwareAddress": "x" * 129, "ips": ["10.0.0.1/24"] * 2}
    status = {
        "devices": [
            report(networkData=bad_network),
            report(conditions=[condition(status="Maybe")], shareID="x"),
            report(shareID="x"),
        ],
        "reservedFor": [consumer(), consumer()],
        "allocation": allocation(
            result(), result(driver="", bindingConditions=list("abcde"), tolerations=[{"key": "!"}])
        ),
    }
    broken = "allocation.devices.results[1]"

    got = send(status, stored())

    assert [error.field.removeprefix("status.") for error in got.errors] == [
        "devices[1]",
        "devices[1].conditions[0].status",
        "devices[2]",
        f"{broken}.bindingFailureConditions",
        f"{broken}.driver",
        f"{broken}.tolerations[0].key",
        f"{broken}.bindingConditions",
        "reservedFor[1]",
        "devices[2]",
        "devices[0].networkData.ips[1]",
        "devices[0].networkData.hardwareAddress",
        "devices[1].shareID",
        "devices[2].shareID",
    ]


def test_no_new_consumers_of_a_claim_that_is_deleted() -> None:
    old = stored(
        {"allocation": allocation(), "reservedFor": [consumer("u1"), consumer("u2")]},
        deletionTimestamp=TIME,
    )

    fewer = send(old["status"] | {"reservedFor": [consumer("u2")]}, old)
    more = send(old["status"] | {"reservedFor": [consumer("u3")]}, old)

    assert fewer.texts == []
    assert more.texts == [
        "status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested`"
        " or `deletionTimestamp` are set"
    ]


def test_only_the_status_changes() -> None:
    old = stored(labels={"a": "b"}, finalizers=["x/y"], resourceVersion="7")
    body = claim_body(exactly("other"))
    body["metadata"] |= {"labels": {}, "finalizers": ["z/z"], "resourceVersion": "8"}
    body["status"] = {"allocation": allocation()}

    got = Writer().update(body, old, status=True).obj

    assert got["spec"] == old["spec"]
    assert got["metadata"] == old["metadata"] | {"resourceVersion": "8"}
    assert got["status"] == {"allocation": allocation()}


def test_reports_go_with_their_device() -> None:
    two = allocation(result(), result(device="e"))
    old = stored({"allocation": two, "devices": [report(), report(device="e")]})

    got = send({"devices": old["status"]["devices"]}, old)

    assert got.texts == []
    assert got.obj["status"] == {}


def test_tolerations_of_results_are_defaulted() -> None:
    got = send({"allocation": allocation(result(tolerations=[{"key": "a"}]))}, stored())

    tolerations = got.obj["status"]["allocation"]["devices"]["results"][0]["tolerations"]
    assert tolerations == [{"key": "a", "operator": "Equal"}]


ADMIN_LABEL = "resource.kubernetes.io/admin-access"


def test_admin_access_of_results_needs_the_label() -> None:
    status = {"allocation": allocation(result(), result(device="e", adminAccess=True))}

    refused = send(status, stored(), Writer(namespaces={"ns": {}}))
    allowed = send(status, stored(), Writer(namespaces={"ns": {ADMIN_LABEL: "true"}}))
    granted_before = send(status, stored(status), Writer(namespaces={"ns": {}}))

    assert refused.texts == [
        "status.allocation.devices.results[1].adminAccess: Forbidden: admin access to devices"
        f" requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    ]
    assert allowed.texts == []
    assert granted_before.texts == []


FINALIZER = "resource.kubernetes.io/delete-protection"
PROTECTED = {"with Sully": (Compat.SULLY, [FINALIZER]), "in Kubernetes": (Compat.KUBERNETES, [])}


@pytest.mark.parametrize(("compat", "want"), PROTECTED.values(), ids=PROTECTED.keys())
def test_the_finalizer_comes_with_the_allocation(compat: Compat, want: list[str]) -> None:
    body = claim_body(exactly()) | {"status": {"allocation": allocation()}}
    body["metadata"] |= {"finalizers": [FINALIZER]}

    written = Writer(compat=compat).update(body, stored(), status=True)

    assert written.obj["metadata"].get("finalizers", []) == want


def test_a_claim_that_is_being_deleted_gets_no_finalizer() -> None:
    body = claim_body(exactly()) | {"status": {"allocation": allocation()}}
    body["metadata"] |= {"finalizers": ["a.io/b", FINALIZER]}
    old = stored(finalizers=["a.io/b"])
    old["metadata"] |= {"deletionTimestamp": TIME}

    written = Writer().update(body, old, status=True)

    assert written.obj["metadata"]["finalizers"] == ["a.io/b"]
