"""ValidatingAdmissionPolicies: what is accepted as one, and what they do to writes.

All texts are those of Kubernetes 1.37.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import manifests
from embedded import embedded
from manifests import config_map
from sully.app import ADMIN
from sully.client.direct import DirectTransport
from sully.client.transport import Key, Kind
from sully.machinery.errors import ApiError
from sully.server.bootstrap import ensure_namespaces
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
POLICIES: Kind[Obj] = Kind(
    GROUP,
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    dict,
    namespaced=False,
)
BINDINGS: Kind[Obj] = Kind(
    GROUP,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    dict,
    namespaced=False,
)
MAPS: Kind[Obj] = Kind("", "v1", "configmaps", "ConfigMap", dict)
WIDE = f"{'[1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, ' * 6}a > 0{')' * 6}"
ONE = 'object.data.a == "1"'
DENIED = (
    "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
)


def rule(**more: Any) -> Obj:
    return {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
        **more,
    }


def validation(expression: str = ONE, **more: str) -> Obj:
    return {"expression": expression, **more}


def policy(*validations: Obj, rules: tuple[Obj, ...] = (), **spec: Any) -> Obj:
    match = {"resourceRules": list(rules) or [rule()]}
    checks = list(validations) or [validation()]
    applied = {"matchConstraints": match, "validations": checks, **spec}
    return manifests.body("ValidatingAdmissionPolicy", "p", applied)


def binding(*actions: str, **spec: Any) -> Obj:
    bound = {"policyName": "p", "validationActions": list(actions or ("Deny",)), **spec}
    return manifests.body("ValidatingAdmissionPolicyBinding", "b", bound)


def config(name: str = "c", **data: str) -> Obj:
    return config_map(name, data, namespace="default")


class World:
    """A server with policies."""

    def __init__(self) -> None:
        self.api = embedded(MemoryStore(), FakeClock())
        self.admin = self.user("admin", "system:masters")

    async def start(self) -> None:
        await ensure_namespaces(InProcess(self.api, ADMIN))
        await self.api.policies.start()

    def user(self, name: str, *groups: str) -> DirectTransport:
        return DirectTransport(InProcess(self.api, User(name, groups), agent=name))

    async def bind(self, policy: Obj, binding: Obj) -> None:
        await self.admin.create(POLICIES, policy)
        await self.admin.create(BINDINGS, binding)


@pytest.fixture
async def world() -> World:
    created = World()
    await created.start()
    return created


async def refusal(world: World, kind: Kind[Obj], obj: Obj) -> tuple[int, str]:
    with pytest.raises(ApiError) as raised:
        await world.admin.create(kind, obj)
    return raised.value.code, str(raised.value)


INVALID: dict[str, tuple[Obj, str]] = {
    "no rules": (
        policy(matchConstraints={}),
        "spec.matchConstraints.resourceRules: Required value",
    ),
    "a result that is not a bool": (
        policy(validation("object.data")),
        'spec.validations[0].expression: Invalid value: "object.data": must evaluate to bool but'
        " got dyn",
    ),
    "an unknown name": (
        policy(validation("foo")),
        'spec.validations[0].expression: Invalid value: "foo": compilation failed: ERROR:'
        " <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^",
    ),
    "a variable before it is declared": (
        policy(
            validation("variables.b"),
            variables=[
                {"name": "b", "expression": "variables.a"},
                {"name": "a", "expression": "true"},
            ],
        ),
        "[spec.variables[0].expression",
    ),
    "parameters without a kind": (
        policy(validation("params.x == 1")),
        'spec.validations[0].expression: Invalid value: "params.x == 1": compilation failed: ERROR:'
        " <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^",
    ),
    "two operations and all": (
        policy(rules=(rule(operations=["*", "CREATE"]),)),
        'spec.matchConstraints.resourceRules[0].operations: Invalid value: ["*","CREATE"]: if \'*\''
        " is present, must not specify other operations",
    ),
    "an unknown reason": (
        policy(validation(reason="NotFound")),
        'spec.validations[0].reason: Unsupported value: "NotFound": supported values: "Forbidden",'
        ' "Invalid", "RequestEntityTooLarge"',
    ),
}


@pytest.mark.parametrize(("body", "want"), INVALID.values(), ids=INVALID.keys())
async def test_invalid_policies(world: World, body: Obj, want: str) -> None:
    code, text = await refusal(world, POLICIES, body)

    assert code == 422
    assert text.startswith(f'ValidatingAdmissionPolicy.{GROUP} "p" is invalid: {want}')


BAD_BINDINGS: dict[str, tuple[Obj, str]] = {
    "no action": (
        {"metadata": {"name": "b"}, "spec": {"policyName": "p"}},
        "spec.validationActions: Required value",
    ),
    "deny and warn": (
        binding("Deny", "Warn"),
        'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and'
        " Warn (repeating the same validation failure information in the API response and headers"
        " serves no purpose)",
    ),
    "parameters by name and label": (
        binding(paramRef={"name": "x", "selector": {}, "parameterNotFoundAction": "Deny"}),
        "[spec.paramRef.name: Forbidden: name and selector are mutually exclusive,"
        " spec.paramRef.selector: Forbidden: name and selector are mutually exclusive]",
    ),
    "parameters by nothing": (
        binding(paramRef={"parameterNotFoundAction": "Deny"}),
        "spec.paramRef: Required value: one of name or selector must be specified",
    ),
    "an operator of labels that does not exist": (
        binding(
            paramRef={
                "selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]},
                "parameterNotFoundAction": "Deny",
            }
        ),
        'spec.paramRef.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid'
        " selector operator",
    ),
}


@pytest.mark.parametrize(("body", "want"), BAD_BINDINGS.values(), ids=BAD_BINDINGS.keys())
async def test_invalid_bindings(world: World, body: Obj, want: str) -> None:
    _, text = await refusal(world, BINDINGS, body)

    assert text == f'ValidatingAdmissionPolicyBinding.{GROUP} "b" is invalid: {want}'


@dataclass(frozen=True)
class Case:
    policy: Obj
    obj: Obj = field(default_factory=lambda: config(a="2"))
    binding: Obj = field(default_factory=binding)
    code: int = 0
    """0 if the write is accepted."""
    want: str = ""


CASES = {
    "true": Case(policy(), config(a="1")),
    "false": Case(policy(), code=422, want=f"failed expression: {ONE}"),
    "an error": Case(
        policy(),
        config(b="1"),
        code=422,
        want=f"expression '{ONE}' resulted in error: no such key: a",
    ),
    "an error that is ignored": Case(policy(failurePolicy="Ignore"), config(b="1")),
    "false is not ignored": Case(policy(failurePolicy="Ignore"), code=422, want="failed"),
    "a message": Case(policy(validation(message=" not one ")), code=422, want="not one"),
    "a message expression": Case(
        policy(validation(message="m", messageExpression='"a is " + object.data.a')),
        code=422,
        want="a is 2",
    ),
    "a message expression that fails": Case(
        policy(validation("false", message="m", messageExpression='"a is " + object.data.x')),
        code=422,
        want="m",
    ),
    "a reason": Case(
        policy(validation(reason="Forbidden")), code=403, want=f"failed expression: {ONE}"
    ),
    "a variable": Case(
        policy(
            validation("variables.one", messageExpression="string(variables.one)"),
            variables=[
                {"name": "a", "expression": "object.data.a"},
                {"name": "one", "expression": 'variables.a == "1"'},
            ],
        ),
        code=422,
        want="false",
    ),
    "a variable that fails": Case(
        policy(
            validation('variables.x == "1"'),
            variables=[{"name": "x", "expression": "object.data.x"}],
        ),
        code=422,
        want='expression \'variables.x == "1"\' resulted in error: composited variable "x" fails'
        " to evaluate: no such key: x",
    ),
    "a condition that is false": Case(
        policy(matchConditions=[{"name": "n", "expression": 'object.metadata.name != "c"'}])
    ),
    "a condition that fails": Case(
        policy(matchConditions=[{"name": "n", "expression": "object.data.x == '1'"}]),
        code=422,
        want="expression 'object.data.x == '1'' resulted in error: no such key: x",
    ),
    "another resource": Case(policy(rules=(rule(resources=["secrets"]),))),
    "another operation": Case(policy(rules=(rule(operations=["DELETE"]),))),
    "an excluded resource": Case(
        policy(
            matchConstraints={
                "resourceRules": [rule(resources=["*"])],
                "excludeResourceRules": [rule()],
            }
        )
    ),
    "another label": Case(
        policy(
            matchConstraints={
                "resourceRules": [rule()],
                "objectSelector": {"matchLabels": {"a": "b"}},
            }
        )
    ),
    "its namespace": Case(
        policy(
            matchConstraints={
                "resourceRules": [rule()],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            }
        ),
        code=422,
        want="failed",
    ),
    "a binding for others": Case(
        policy(), binding=binding(matchResources={"resourceRules": [rule(operations=["UPDATE"])]})
    ),
    "the request": Case(
        policy(
            validation(
                "false",
                messageExpression='request.userInfo.username + " " + request.kind.kind + " " +'
                ' request.operation + " " + namespaceObject.metadata.name + " " + object.kind',
            )
        ),
        code=422,
        want="admin ConfigMap CREATE default ConfigMap",
    ),
    "what the user may do": Case(
        policy(validation('authorizer.requestResource.check("fly").allowed()')), config(a="2")
    ),
    "no parameter": Case(
        policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        binding=binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}),
        code=422,
        want="failed to configure binding: no params found for policy binding with `Deny`"
        " parameterNotFoundAction",
    ),
    "no parameter is needed": Case(
        policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        binding=binding(paramRef={"name": "limits", "parameterNotFoundAction": "Allow"}),
    ),
    "more than it may cost": Case(
        policy(validation(WIDE)),
        code=422,
        want="expression '" + WIDE + "' resulted in error: operation cancelled: actual cost limit"
        " exceeded",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_create(world: World, case: Case) -> None:
    await world.bind(case.policy, case.binding)

    if not case.code:
        await world.admin.create(MAPS, case.obj)
        return
    code, text = await refusal(world, MAPS, case.obj)

    assert code == case.code
    assert text.startswith(DENIED + case.want)


async def test_a_parameter(world: World) -> None:
    await world.admin.create(MAPS, config("limits", a="3"))
    await world.bind(
        policy(
            validation(
                "object.data.a == params.data.a", messageExpression='"not " + params.data.a'
            ),
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        ),
        binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}),
    )

    await world.admin.create(MAPS, config("d", a="3"))
    assert await refusal(world, MAPS, config(a="2")) == (422, f"{DENIED}not 3")


@dataclass(frozen=True)
class Selected:
    """Parameters by label; those of `default` are a=1 (level: low) and a=2 (level: high)."""

    selector: Obj
    accepted: tuple[str, ...] = ()
    """The values that satisfy all selected parameters, of 1, 2 and 3."""
    missing: str = "Deny"
    namespace: str = ""
    denied: str = ""


NONE_FOUND = (
    "failed to configure binding: no params found for policy binding with `Deny`"
    " parameterNotFoundAction"
)
SELECTED = {
    "one": Selected({"matchLabels": {"level": "low"}}, ("1",), denied="not 1"),
    "another": Selected({"matchLabels": {"level": "high"}}, ("2",), denied="not 2"),
    "by an expression": Selected(
        {"matchExpressions": [{"key": "level", "operator": "NotIn", "values": ["low"]}]},
        ("2",),
        denied="not 2",
    ),
    "all: each is evaluated": Selected({}, (), denied="not "),
    "none, which is denied": Selected({"matchLabels": {"level": "no"}}, (), denied=NONE_FOUND),
    "none, which is allowed": Selected(
        {"matchLabels": {"level": "no"}}, ("1", "2", "3"), missing="Allow"
    ),
    "of another namespace": Selected(
        {"matchLabels": {"level": "low"}}, ("3",), namespace="kube-system", denied="not 3"
    ),
}


def labelled(name: str, value: str, level: str, namespace: str = "default") -> Obj:
    labels = {"level": level}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {"a": value},
    }


@pytest.mark.parametrize("case", SELECTED.values(), ids=SELECTED.keys())
async def test_parameters_by_label(world: World, case: Selected) -> None:
    for param in (
        labelled("low", "1", "low"),
        labelled("high", "2", "high"),
        labelled("elsewhere", "3", "low", "kube-system"),
    ):
        await world.admin.create(MAPS, param)
    ref = {"selector": case.selector, "parameterNotFoundAction": case.missing}
    equal = validation("object.data.a == params.data.a", messageExpression='"not " + params.data.a')
    await world.bind(
        policy(equal, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        binding(paramRef=ref | ({"namespace": case.namespace} if case.namespace else {})),
    )

    for value in ("1", "2", "3"):
        if value in case.accepted:
            await world.admin.create(MAPS, config(f"c-{value}", a=value))
        else:
            code, text = await refusal(world, MAPS, config(a=value))
            assert code == 422
            assert text.startswith(DENIED + case.denied)


async def test_parameters_of_the_cluster_by_label(world: World) -> None:
    classes: Kind[Obj] = Kind(
        "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", dict, namespaced=False
    )
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    ref = {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Allow"}
    message = 'params.kind + " " + params.metadata.name'
    await world.bind(
        policy(validation("false", messageExpression=message), paramKind=kind),
        binding(paramRef=ref),
    )

    await world.admin.create(MAPS, config("before"))
    metadata = {"name": "gpus", "labels": {"limits": "yes"}}
    await world.admin.create(classes, {"metadata": metadata, "spec": {}})
    during = await refusal(world, MAPS, config())
    await world.admin.delete(classes, Key("", "gpus"))
    await world.admin.create(MAPS, config("after"))

    assert during == (422, f"{DENIED}DeviceClass gpus")


async def test_updates_and_deletions(world: World) -> None:
    await world.admin.create(MAPS, config(a="1"))
    same = validation("object == null ? oldObject.data.a != '1' : object.data == oldObject.data")
    await world.bind(policy(same, rules=(rule(operations=["UPDATE", "DELETE"]),)), binding())

    for write in (
        world.admin.patch(MAPS, Key("default", "c"), {"data": {"a": "2"}}),
        world.admin.delete(MAPS, Key("default", "c")),
    ):
        with pytest.raises(ApiError, match="denied request"):
            await write
    await world.admin.patch(MAPS, Key("default", "c"), {"metadata": {"labels": {"a": "b"}}})
    await world.admin.delete(BINDINGS, Key("", "b"))
    await world.admin.delete(MAPS, Key("default", "c"))


async def test_policies_do_not_apply_to_policies(world: World) -> None:
    every = rule(operations=["*"], apiGroups=["*"], apiVersions=["*"], resources=["*/*"])
    await world.bind(policy(validation("false"), rules=(every,)), binding())

    await world.admin.delete(BINDINGS, Key("", "b"))
    await world.admin.create(MAPS, config())


async def test_another_version_of_the_resource(world: World) -> None:
    claims: Kind[Obj] = Kind("resource.k8s.io", "v1beta1", "resourceclaims", "ResourceClaim", dict)
    matched = rule(apiGroups=["resource.k8s.io"], resources=["resourceclaims"])
    has = validation("has(object.spec.devices.requests[0].exactly)", message="not v1")
    denied = validation('object.apiVersion != "resource.k8s.io/v1"', message="is v1")
    await world.bind(policy(has, denied, rules=(matched,)), binding())
    request = {"name": "r", "deviceClassName": "gpu"}
    claim = {
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }

    _, text = await refusal(world, claims, claim)

    assert text.endswith("denied request: is v1")


async def test_parameters_that_the_author_may_not_read(world: World) -> None:
    rules = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
    roles: Kind[Obj] = Kind(
        "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", dict, namespaced=False
    )
    bound: Kind[Obj] = Kind(
        "rbac.authorization.k8s.io",
        "v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        dict,
        namespaced=False,
    )
    await world.api.authorizer.start()
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}
    await world.admin.create(roles, {"metadata": {"name": "r"}, "rules": rules})
    await world.admin.create(
        bound, {"metadata": {"name": "r"}, "roleRef": ref, "subjects": [subject]}
    )
    eve = world.user("eve")
    secrets = policy(paramKind={"apiVersion": "v1", "kind": "Secret"})

    with pytest.raises(ApiError, match=r"spec\.paramKind: Forbidden: user eve must have"):
        await eve.create(POLICIES, secrets)
    await world.admin.create(POLICIES, secrets)
    named = {"name": "token", "namespace": "default", "parameterNotFoundAction": "Deny"}
    selected = {"selector": {}, "namespace": "default", "parameterNotFoundAction": "Deny"}
    for params, verb in ((named, "get"), (selected, "list")):
        want = rf'spec\.paramRef: Forbidden: user eve does not have "{verb}" permission'
        with pytest.raises(ApiError, match=want):
            await eve.create(BINDINGS, binding(paramRef=params))
