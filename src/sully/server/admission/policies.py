"""Applies ValidatingAdmissionPolicies to writes, after validation, as Kubernetes does.

What a policy decides is `domain/admission`. Policies and bindings are kept compiled, and take
effect with the write after the one that created them. Without policies a write costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from sully.api.admissionregistration.types import AUDIT, DENY, GROUP, WARN
from sully.domain.admission.matching import Match, Write, compile_match
from sully.domain.admission.policies import Failure, Policy
from sully.machinery.cel.admission import PolicyInput, namespace_input
from sully.machinery.cel.authorizer import AuthorizationCheck, AuthorizerValue, CheckDecision
from sully.machinery.errors import (
    ApiError,
    Forbidden,
    Invalid,
    RequestEntityTooLarge,
    forbidden,
    invalid,
)
from sully.machinery.fields import Path
from sully.machinery.selectors import labels
from sully.machinery.serialization.codec import to_json
from sully.runtime.clock import Clock
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authentication.tokens import PREFIX
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.registry.writes import is_dry_run
from sully.server.requests import Request, Target, User
from sully.server.storage.informer import StoreInformer, keep_current
from sully.server.storage.objects import Objects
from sully.store.base import Store

Obj = dict[str, Any]
POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
FAILURE_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure"
MAX_FAILURES = 50
_ERRORS: Mapping[str, type[ApiError]] = {
    error.reason: error for error in (Forbidden, Invalid, RequestEntityTooLarge)
}
_NO_PARAMS = "no params found for policy binding with `Deny` parameterNotFoundAction"
_NO_NAMESPACE = (
    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
)


class _Binding(msgspec.Struct, frozen=True):
    name: str
    policy: str
    match: Match
    actions: tuple[str, ...]
    params: Obj | None


class _ConfigurationError(Exception):
    """A binding that cannot be used for a write."""


class _Denial(msgspec.Struct, frozen=True):
    policy: str
    binding: str
    failure: Failure


class PolicyAdmission:
    """Evaluates policies for each write that they match."""

    def __init__(
        self,
        store: Store,
        objects: Objects,
        authorizer: Authorizer,
        lookup: Callable[[str, str, str], Obj | None],
    ) -> None:
        self._store = store
        self._objects = objects
        self._authorizer = authorizer
        self._lookup = lookup
        self._policies: dict[str, Policy] = {}
        self._bindings: dict[str, dict[str, _Binding]] = {}
        """By policy and by name."""
        self._informer = StoreInformer(
            store,
            objects,
            {
                POLICIES: _Handler(self._put_policy, self._drop_policy),
                BINDINGS: _Handler(self._put_binding, self._drop_binding),
            },
        )

    async def start(self) -> None:
        """Load policies and bindings."""
        await self._informer.open()

    async def run(self, clock: Clock) -> None:
        """Keep the policies current until the server stops."""
        await keep_current(clock, self._informer)

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        return target.resource.storage_key in (POLICIES, BINDINGS) and not target.subresource

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject parameters that the author of a policy or binding may not read.

        Messages of policies can show them to everyone.
        """
        key, obj = attributes.request.target.resource.storage_key, attributes.obj
        if obj is None:
            return
        spec = obj.get("spec") or {}
        if key == POLICIES and spec.get("paramKind"):
            self._require(attributes, spec["paramKind"], "paramKind", {})
        elif key == BINDINGS and spec.get("paramRef"):
            self._informer.pull()
            policy = self._policies.get(spec.get("policyName", ""))
            kind = policy.param_kind if policy is not None else None
            self._require(attributes, kind or {}, "paramRef", spec["paramRef"])

    def _require(
        self, attributes: AdmissionAttributes, kind: Mapping[str, Any], field: str, ref: Obj
    ) -> None:
        group, _, version = kind.get("apiVersion", "*/*").rpartition("/")
        resource = self._objects.scheme.by_kind(group, version, kind.get("kind", ""))
        user, target = attributes.request.user, attributes.request.target
        verb = "list" if "selector" in ref else "get"
        needed = Attributes(
            verb,
            group=group,
            version=version,
            resource="*" if resource is None else resource.plural,
            namespace=ref.get("namespace", "*"),
            name=ref.get("name", "*"),
        )
        if self._authorizer.authorize(user, needed).allowed:
            return
        text = (
            f'user {user.name} does not have "{verb}" permission on the object referenced by'
            " paramRef"
        )
        if field == "paramKind":
            text = (
                f'user {user.name} must have "get" permission on all objects of the referenced'
                f" paramKind (kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
            )
        problem = Path("spec").child(field).forbidden(text)
        name = _name(attributes.request, attributes.obj)
        raise invalid(target.resource.kind, target.resource.group, name, [problem])

    def review(
        self, request: Request, operation: str, obj: Obj | None, old: Obj | None = None
    ) -> list[str]:
        """Evaluate the policies for a write, and return warnings; raise an ApiError to deny it."""
        self._informer.pull()
        target = request.target
        exempt = target.resource.group == GROUP or target.subresource == "scale"
        if not self._bindings or not self._policies or exempt:
            return []
        review = _Review(self, request, operation, obj, old)
        for name in sorted(self._policies):
            if name in self._bindings:
                review.apply(self._policies[name], self._bindings[name])
        if review.failures:
            listed = to_json(review.failures[:MAX_FAILURES]).decode()
            request.audit_annotations[FAILURE_ANNOTATION] = listed
        if review.denials:
            error = _refusal(request, obj, old, review.denials[0])
            error.warnings += review.warnings
            raise error
        return review.warnings

    # -- what a review needs ----------------------------------------------------------------------

    def namespace(self, name: str) -> Obj | None:
        """Return a namespace."""
        return self._lookup("namespaces", "", name) if name else None

    def shown(self, obj: Obj | None, request: Request, version: str) -> Obj | None:
        """Return an object in a version, as clients see it."""
        if obj is None:
            return None
        resource = request.target.resource
        group = f"{resource.group}/{version}" if resource.group else version
        converted = self._objects.convert(obj, resource, version)
        return {"apiVersion": group, "kind": resource.kind, **converted}

    def params(self, policy: Policy, binding: _Binding, namespace: str) -> list[Obj | None]:
        """Return the parameters for a write; None stands for no parameter."""
        kind, ref = policy.param_kind, binding.params
        if kind is None or ref is None:
            return [None]
        group, _, version = kind["apiVersion"].rpartition("/")
        resource = self._objects.scheme.by_kind(group, version, kind["kind"])
        if resource is None:
            shown = f"{kind['apiVersion']}, Kind={kind['kind']}"
            raise _ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")
        place = ref.get("namespace", "")
        if not resource.namespaced and place:
            raise _ConfigurationError(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        if resource.namespaced and not (place or namespace):
            raise _ConfigurationError(_NO_NAMESPACE)
        place = (place or namespace) if resource.namespaced else ""
        params = self._referenced(resource.storage_key, place, ref)
        if not params and ref["parameterNotFoundAction"] == DENY:
            raise _ConfigurationError(_NO_PARAMS)
        return [{**kind, **self._objects.convert(param, resource, version)} for param in params]

    def _referenced(self, key: str, namespace: str, ref: Obj) -> list[Obj]:
        """Return the objects of a namespace that a paramRef names or selects, by name."""
        if ref.get("name"):
            param = self._lookup(key, namespace, ref["name"])
            return [] if param is None else [param]
        selector = labels.from_object(ref["selector"])
        records = self._store.current(key, namespace or None)
        return [
            param
            for param in map(self._objects.live, records)
            if selector.matches(param["metadata"].get("labels") or {})
        ]

    def authorizer(self, user: User) -> AuthorizerValue:
        """Return the value of `authorizer` for a user."""

        def authorize(check: AuthorizationCheck) -> CheckDecision:
            account = user
            if check.account is not None:
                namespace, name = check.account
                groups = (
                    "system:serviceaccounts",
                    f"system:serviceaccounts:{namespace}",
                    "system:authenticated",
                )
                account = User(f"{PREFIX}{namespace}:{name}", groups)
            attributes = Attributes(
                check.verb,
                group=check.group,
                version="*",
                resource=check.resource,
                subresource=check.subresource,
                namespace=check.namespace,
                name=check.name,
                path=check.path or None,
            )
            decision = self._authorizer.authorize(account, attributes)
            return CheckDecision(decision.allowed, decision.reason)

        return AuthorizerValue(authorize)

    # -- the index --------------------------------------------------------------------------------

    def _put_policy(self, obj: Obj) -> None:
        """Compile a policy."""
        self._policies[obj["metadata"]["name"]] = Policy(obj)

    def _drop_policy(self, name: str) -> None:
        """Forget a policy."""
        self._policies.pop(name, None)

    def _put_binding(self, obj: Obj) -> None:
        """Index a binding."""
        name, spec = obj["metadata"]["name"], obj["spec"]
        self._drop_binding(name)
        binding = _Binding(
            name,
            spec["policyName"],
            compile_match(spec.get("matchResources")),
            tuple(spec["validationActions"]),
            spec.get("paramRef"),
        )
        self._bindings.setdefault(binding.policy, {})[name] = binding

    def _drop_binding(self, name: str) -> None:
        """Forget a binding."""
        for policy, bindings in list(self._bindings.items()):
            bindings.pop(name, None)
            if not bindings:
                del self._bindings[policy]


class _Handler(msgspec.Struct, frozen=True):
    """Passes objects of the store on."""

    put: Callable[[Obj], None]
    forget: Callable[[str], None]

    def drop(self, namespace: str, name: str) -> None:
        """Forget an object."""
        assert not namespace, "both kinds are cluster-scoped"
        self.forget(name)


class _Review:
    """One write under all policies."""

    def __init__(
        self,
        admission: PolicyAdmission,
        request: Request,
        operation: str,
        obj: Obj | None,
        old: Obj | None,
    ) -> None:
        self._admission = admission
        self._request = request
        self._obj, self._old = obj, old
        target = request.target
        self._namespace = admission.namespace(target.namespace)
        resource = target.resource
        self._write = Write(
            operation=operation,
            group=resource.group,
            version=target.version,
            versions=[version.name for version in resource.versions if version.enabled],
            resource=resource.plural,
            subresource=target.subresource,
            namespaced=resource.namespaced,
            name=_name(request, obj),
            is_namespace=resource.storage_key == "namespaces",
            obj=obj,
            old=old,
            namespace=self._namespace,
        )
        self.denials: list[_Denial] = []
        self.failures: list[Obj] = []
        self.warnings: list[str] = []

    def apply(self, policy: Policy, bindings: Mapping[str, _Binding]) -> None:
        """Evaluate a policy for each of its bindings that match."""
        version = policy.match.version(self._write)
        if version is None:
            return
        annotations: dict[str, list[str]] = {}
        for binding in (bindings[name] for name in sorted(bindings)):
            if binding.match.version(self._write) is None:
                continue
            try:
                inputs = list(self._inputs(policy, binding, version))
            except _ConfigurationError as error:
                if policy.fails:
                    text = f"failed to configure binding: {error}"
                    self.denials.append(_Denial(policy.name, binding.name, Failure(0, text)))
                continue
            for decision_input in inputs:
                verdict = policy.decide(decision_input)
                for failure in verdict.failures:
                    self._act(policy, binding, failure)
                for failure in verdict.errors:
                    self.denials.append(_Denial(policy.name, binding.name, failure))
                for key, value in verdict.annotations.items():
                    values = annotations.setdefault(key, [])
                    values += () if value in values else (value,)
        for key, values in annotations.items():
            self._request.audit_annotations[f"{policy.name}/{key}"] = ", ".join(values)

    def _inputs(self, policy: Policy, binding: _Binding, version: str) -> Iterator[PolicyInput]:
        target = self._request.target
        for param in self._admission.params(policy, binding, target.namespace):
            yield PolicyInput(
                obj=self._admission.shown(self._obj, self._request, version),
                old=self._admission.shown(self._old, self._request, version),
                request=self._described(version),
                namespace=namespace_input(self._namespace),
                params=param,
                authorizer=self._admission.authorizer(self._request.user),
            )

    def _described(self, version: str) -> Obj:
        request, write = self._request, self._write
        resource, user = request.target.resource, request.user
        kind = {"group": resource.group, "kind": resource.kind}
        names = {"group": resource.group, "resource": resource.plural}
        return {
            "kind": {**kind, "version": version},
            "resource": {**names, "version": version},
            "subResource": write.subresource,
            "requestKind": {**kind, "version": write.version},
            "requestResource": {**names, "version": write.version},
            "requestSubResource": write.subresource,
            "name": write.name,
            "namespace": request.target.namespace,
            "operation": write.operation,
            "userInfo": {
                "username": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra.items()},
            },
            "dryRun": is_dry_run(request),
            "options": None,
        }

    def _act(self, policy: Policy, binding: _Binding, failure: Failure) -> None:
        for action in binding.actions:
            if action == DENY:
                self.denials.append(_Denial(policy.name, binding.name, failure))
            elif action == WARN:
                self.warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding"
                    f" '{binding.name}': {failure.message}"
                )
            elif action == AUDIT:
                self.failures.append(
                    {
                        "message": failure.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": failure.index,
                        "validationActions": list(binding.actions),
                    }
                )


def _name(request: Request, obj: Obj | None) -> str:
    return request.target.name or ((obj or {}).get("metadata") or {}).get("name", "")


def _refusal(request: Request, obj: Obj | None, old: Obj | None, denial: _Denial) -> ApiError:
    resource = request.target.resource
    text = (
        f"ValidatingAdmissionPolicy '{denial.policy}' with binding '{denial.binding}' denied"
        f" request: {denial.failure.message}"
    )
    base = forbidden(resource.plural, resource.group, _name(request, obj or old), text)
    error = _ERRORS[denial.failure.reason](str(base))
    error.details = {**(base.details or {}), "causes": [{"message": text}]}
    return error
