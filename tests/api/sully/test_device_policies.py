"""Policies that turn faults of devices into taints: what a write checks and sets."""

from typing import Any

import msgspec
import pytest

import manifests
from api.cluster.hub import MASTER, Hub
from sully.api import build_scheme
from sully.api.resource.annotations import CREATED_BY
from sully.api.sully.types import DeviceTaintPolicy
from sully.machinery.compat import Compat

Obj = dict[str, Any]

SPEC: Obj = {
    "selector": {"driver": "gpu.example.com"},
    "sources": [{"name": "xid", "driverTaint": {"key": "example.com/xid"}}],
    "taint": {"key": "example.com/faulty"},
    "steps": [{"effect": "None"}, {"after": "2m", "effect": "NoSchedule"}],
}


END = "2031-01-01T00:00:00Z"


def _policy(**spec: Any) -> Obj:
    return manifests.body("DeviceTaintPolicy", "faulty", {**SPEC, **spec})


def _source(**source: Any) -> Obj:
    return _policy(sources=[{"name": "a", **source}])


JOB: Obj = {
    "namespace": "tests",
    "deviceClassName": "gpu",
    "template": {"spec": {"template": {"spec": {"containers": [{"name": "t", "image": "i"}]}}}},
}


def _query(**prometheus: Any) -> Obj:
    return _source(prometheus={"url": "http://prometheus", "query": "up", **prometheus})


def _proof(**job: Any) -> Obj:
    return _policy(proof={"type": "Job", "job": {**JOB, **job}})


def _pod(**pod: Any) -> Obj:
    return _proof(template={"spec": {"template": {"spec": pod}}})


WRONG: dict[str, tuple[Obj, str]] = {
    "every device by mistake": (
        _policy(selector={}),
        "spec.selector: Required value: a selector without criteria selects every device: set"
        " matchAll to true to mean that",
    ),
    "every device and some": (
        _policy(selector={"matchAll": True, "driver": "gpu.example.com"}),
        "spec.selector.matchAll: Forbidden: must not be set with other criteria",
    ),
    "no source": (
        _policy(sources=[]),
        "spec.sources: Required value: a policy without sources does nothing",
    ),
    "a name twice": (
        _policy(sources=SPEC["sources"] * 2),
        'spec.sources[1].name: Duplicate value: "xid"',
    ),
    "no kind of source": (
        _source(),
        "spec.sources[0]: Invalid value: []: must have exactly one of driverTaint, attributes,"
        " claimCondition, deviceHealth, nodeCondition, nodeTaint, prometheus, notPublished",
    ),
    "an expression that does not compile": (
        _source(driverTaint={"key": "k", "expression": "data.xid =="}),
        "spec.sources[0].driverTaint.expression: Invalid value",
    ),
    "an expression that is not a condition": (
        _source(attributes={"expression": "1 + 1"}),
        "spec.sources[0].attributes.expression: Invalid value: "
        '"1 + 1": must evaluate to bool or the unknown type, not int',
    ),
    "steps from strong to weak": (
        _policy(steps=[{"effect": "NoExecute"}, {"effect": "NoSchedule"}]),
        'spec.steps[1].effect: Invalid value: "NoSchedule": must be stronger than the step before',
    ),
    "steps back in time": (
        _policy(
            steps=[{"after": "2m", "effect": "None"}, {"after": "90s", "effect": "NoSchedule"}]
        ),
        'spec.steps[1].after: Invalid value: "90s": must not be less than that of the step before',
    ),
    "an effect of ours": (
        _policy(steps=[{"effect": "PreferNoSchedule"}]),
        'spec.steps[0].effect: Unsupported value: "PreferNoSchedule": supported values:'
        ' "NoExecute", "NoSchedule", "None"',
    ),
    "no duration": (
        _policy(holdFor="soon"),
        'spec.holdFor: Invalid value: "soon": must be a duration, for example 15s or 1h30m',
    ),
    "longer than a year": (
        _policy(clearAfter="9000h"),
        'spec.clearAfter: Invalid value: "9000h": must be between 0s and 8760h',
    ),
    "a class without a name": (
        _policy(limits=[{"scope": "Class", "maxUnavailable": 1}]),
        "spec.limits[0].deviceClassName: Required value: the scope is Class",
    ),
    "a query to a file": (
        _query(url="file:///etc/passwd"),
        'spec.sources[0].prometheus.url: Invalid value: "file:///etc/passwd": must be an http or'
        " https URL with a host",
    ),
    "a query with a password": (
        _query(url="http://me:secret@prometheus"),
        'spec.sources[0].prometheus.url: Invalid value: "http://me:secret@prometheus": must not'
        " have credentials: policies can be read by many",
    ),
    "a query to no port": (
        _query(url="http://prometheus:x"),
        'spec.sources[0].prometheus.url: Invalid value: "http://prometheus:x": must be a URL',
    ),
    "a query with a query": (
        _query(url="http://prometheus/?a=b"),
        'spec.sources[0].prometheus.url: Invalid value: "http://prometheus/?a=b": must not have a'
        " query or a fragment",
    ),
    "an empty query, without a pause": (
        _query(query=" ", interval="100ms", labels={"gpu": "gpu"}, caBundle="aGFsbG8="),
        "[spec.sources[0].prometheus.query: Required value, spec.sources[0].prometheus.interval:"
        ' Invalid value: "100ms": must be at least 1s, spec.sources[0].prometheus.labels[gpu]:'
        ' Unsupported value: "gpu": supported values: "index", "node", "pciAddress", "uuid",'
        ' spec.sources[0].prometheus.caBundle: Invalid value: "": must have certificates in PEM]',
    ),
    "a query that takes too long": (
        _query(interval="5s"),
        'spec.sources[0].prometheus.timeout: Invalid value: "10s": must not exceed the interval',
    ),
    "a query that takes hours": (
        _query(interval="8760h", timeout="61s"),
        'spec.sources[0].prometheus.timeout: Invalid value: "61s": must be at most 60s',
    ),
    "a query to the metadata of a cloud": (
        _query(url="http://169.254.169.254/latest"),
        'spec.sources[0].prometheus.url: Invalid value: "http://169.254.169.254/latest": must not'
        " be a link-local, multicast or unspecified address",
    ),
    "an unknown proof": (
        _policy(proof={"type": "Prayer"}),
        'spec.proof.type: Unsupported value: "Prayer": supported values: "Job", "Manual", "None"',
    ),
    "a Job without a template": (
        _policy(proof={"type": "Job"}),
        "spec.proof.job: Required value: the type is Job",
    ),
    "a Job that is not wanted": (
        _policy(proof={"type": "Manual", "job": JOB}),
        "spec.proof.job: Forbidden: may only be set with the type Job",
    ),
    "a Job of many": (
        _proof(attempts=11, parallelism=101, timeout="0s"),
        '[spec.proof.job.timeout: Invalid value: "0s": must be greater than 0s, '
        "spec.proof.job.attempts: Invalid value: 11: must be between 1 and 10, inclusive, "
        "spec.proof.job.parallelism: Invalid value: 101: must be between 1 and 100, inclusive]",
    ),
    "a Job of something else": (
        _proof(
            template={"kind": "Job", "metadata": {"name": "a"}, "spec": JOB["template"]["spec"]}
        ),
        "[spec.proof.job.template.kind: Forbidden: may only have metadata and spec, "
        "spec.proof.job.template.metadata.name: Forbidden: may only have annotations and labels]",
    ),
    "a Job without containers": (
        _pod(),
        "spec.proof.job.template.spec.template.spec.containers: Required value",
    ),
    "a Job with many pods": (
        _proof(template={"spec": {**JOB["template"]["spec"], "completions": 2, "suspend": True}}),
        "[spec.proof.job.template.spec.suspend: Forbidden: the controller sets it, "
        "spec.proof.job.template.spec.completions: Invalid value: 2: must be 1]",
    ),
    "a Job that starts again and again": (
        _pod(containers=[{"name": "t"}], restartPolicy="Always"),
        "spec.proof.job.template.spec.template.spec.restartPolicy: Unsupported value:"
        ' "Always": supported values: "Never", "OnFailure"',
    ),
    "a template that is a text": (
        _proof(template="x"),
        'spec.proof.job.template: Invalid value: "x": must be an object',
    ),
    "a template that is a number": (
        _proof(template=5),
        "spec.proof.job.template: Invalid value: 5: must be an object",
    ),
    "a template that is a list": (
        _proof(template=["spec"]),
        'spec.proof.job.template: Invalid value: ["spec"]: must be an object',
    ),
    "a Job with another device": (
        _pod(
            containers=[{"name": "t"}],
            initContainers=["a"],
            resourceClaims=[{"name": "device", "resourceClaimName": "mine"}],
        ),
        "[spec.proof.job.template.spec.template.spec.initContainers: Invalid value: "
        '["a"]: must be a list of objects, '
        "spec.proof.job.template.spec.template.spec.resourceClaims[0].name: Invalid value:"
        ' "device": is the name of the claim that the controller adds]',
    ),
    "suppression without an end or a key": (
        _policy(suppress=[{"key": "", "until": None}, {"key": "a b", "until": END}]),
        "[spec.suppress[0].key: Required value, spec.suppress[0].until: Required value,"
        ' spec.suppress[1].key: Invalid value: "a b"',
    ),
    "suppression by an expression that does not compile": (
        _policy(suppress=[{"key": "a", "until": END, "expression": "data.("}]),
        'spec.suppress[0].expression: Invalid value: "data.("',
    ),
    "suppression that waits for approval": (
        _policy(mode="RequireApproval", suppress=[{"key": "a", "until": END}]),
        "spec.suppress: Forbidden: suppressed taints cannot be approved one by one",
    ),
    "too many suppressions": (
        _policy(suppress=[{"key": "a", "until": END}] * 17),
        "spec.suppress: Too many: 17: must have at most 16 items",
    ),
    "a taint without steps beside a suppression": (
        _policy(suppress=[{"key": "a", "until": END}], sources=None, steps=None),
        "[spec.sources: Required value: a policy without sources does nothing, spec.steps:"
        " Required value: a policy without steps does nothing]",
    ),
    "a storm of nothing": (
        _policy(storm={"devices": 0, "within": "0s"}),
        "[spec.storm.devices: Invalid value: 0: must be greater than 0, spec.storm.within: Invalid"
        ' value: "0s": must be greater than 0s]',
    ),
}


@pytest.mark.parametrize(("body", "want"), WRONG.values(), ids=WRONG.keys())
async def test_refused(body: Obj, want: str) -> None:
    got = await Hub().create(body)

    assert got.code == 422
    assert got.problems.startswith(want)


async def test_what_is_left_out_is_set() -> None:
    got = await Hub().create(_policy())
    read = msgspec.convert(got.obj, DeviceTaintPolicy)

    assert (read.spec.mode, read.spec.identity_attribute) == ("DryRun", "uuid")
    assert (read.spec.on_delete, read.spec.sources[0].severity) == ("Delete", "Major")
    assert [step.min_severity for step in read.spec.steps] == ["Minor", "Minor"]
    assert read.metadata.generation == 1


async def test_what_is_left_out_of_a_proof_is_set() -> None:
    got = await Hub().create(_proof())
    proof = msgspec.convert(got.obj, DeviceTaintPolicy).spec.proof
    job = proof.job if proof is not None else None

    assert job is not None
    assert (job.timeout, job.attempts, job.retry_after, job.parallelism) == ("1h", 3, "5m", 1)


async def test_a_policy_may_only_suppress() -> None:
    spec = {"selector": SPEC["selector"], "suppress": [{"key": "a", "until": END}]}
    got = await Hub().create(_policy() | {"spec": spec})

    assert got.code == 201
    assert "taint" not in got.obj["spec"]


async def test_every_device_on_purpose() -> None:
    assert (await Hub().create(_policy(selector={"matchAll": True}))).code == 201


async def test_the_server_records_who_created_it() -> None:
    hub, forged = Hub(), {"metadata": {"annotations": {CREATED_BY: "mallory"}}}
    created = await hub.create(_policy())
    patched = await hub.patch(_policy(), forged)

    for reported in (created, patched):
        assert reported.obj["metadata"]["annotations"] == {CREATED_BY: MASTER.name}


async def test_the_status_has_an_endpoint_of_its_own() -> None:
    hub = Hub()
    await hub.create(_policy() | {"status": {"selected": 7}})
    change = {"status": {"selected": 3}, "spec": {"mode": "Enforce"}}
    got = await hub.patch(_policy(), change, subresource="status")

    assert got.obj["status"] == {"selected": 3, "faulty": 0, "unavailable": 0}
    assert got.obj["spec"]["mode"] == "DryRun"


def test_kubernetes_has_no_policies() -> None:
    scheme = build_scheme(Compat.KUBERNETES)

    assert scheme.find("sully.dev", "v1alpha1", "devicetaintpolicies") is None
