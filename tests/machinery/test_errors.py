"""The Status objects that clients get."""

from typing import Any

import pytest

from sully.client.http.status import to_error
from sully.machinery import errors
from sully.machinery.compat import Compat
from sully.machinery.errors import ApiError, Expired, Invalid, NotFound
from sully.machinery.fields import Path


def all_errors(root: type[ApiError] = ApiError) -> list[type[ApiError]]:
    # Only ours: a client may have made others for answers it did not know.
    known = [kind for kind in root.__subclasses__() if kind.__module__ == errors.__name__]
    return [kind for child in known for kind in (child, *all_errors(child))]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_names_are_reasons(kind: type[ApiError]) -> None:
    status = kind("what happened").to_status()

    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "what happened",
        "reason": kind.__name__,
        "code": kind.code,
    }
    assert list(status)[-1] == "code"


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_clients_get_the_same_error_back(kind: type[ApiError]) -> None:
    sent = kind("what happened", details={"name": "x"})
    back = to_error(sent.to_status())

    assert type(back) is kind
    assert (back.message, back.details) == (sent.message, sent.details)


BAD, LATE = Path("spec.a").invalid("x", "no"), Path("spec.b").required()
WORDS: dict[str, tuple[ApiError, str, dict[str, Any]]] = {
    "not found": (
        errors.not_found("pods", "", "a"),
        'pods "a" not found',
        {"name": "a", "kind": "pods"},
    ),
    "not found, with a group": (
        errors.not_found("leases", "coordination.k8s.io", "a"),
        'leases.coordination.k8s.io "a" not found',
        {"name": "a", "group": "coordination.k8s.io", "kind": "leases"},
    ),
    "a name that needs quoting": (
        errors.not_found("pods", "", 'a"\n'),
        'pods "a\\"\\n" not found',
        {"name": 'a"\n', "kind": "pods"},
    ),
    "already exists": (
        errors.already_exists("pods", "", "a"),
        'pods "a" already exists',
        {"name": "a", "kind": "pods"},
    ),
    "conflict": (
        errors.conflict("pods", "", "a", "why"),
        'Operation cannot be fulfilled on pods "a": why',
        {"name": "a", "kind": "pods"},
    ),
    "forbidden": (
        errors.forbidden("pods", "", "a", "why"),
        'pods "a" is forbidden: why',
        {"name": "a", "kind": "pods"},
    ),
    "forbidden without a name": (
        errors.forbidden("leases", "coordination.k8s.io", "", "why"),
        "leases.coordination.k8s.io is forbidden: why",
        {"group": "coordination.k8s.io", "kind": "leases"},
    ),
    "one problem": (
        errors.invalid("Pod", "", "a", [BAD]),
        'Pod "a" is invalid: spec.a: Invalid value: "x": no',
        {
            "name": "a",
            "kind": "Pod",
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "message": 'Invalid value: "x": no',
                    "field": "spec.a",
                }
            ],
        },
    ),
    "several problems, one of them twice": (
        errors.invalid("Pod", "", "a", [BAD, LATE, BAD]),
        'Pod "a" is invalid: [spec.a: Invalid value: "x": no, spec.b: Required value]',
        {
            "name": "a",
            "kind": "Pod",
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "message": 'Invalid value: "x": no',
                    "field": "spec.a",
                },
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.b"},
                {
                    "reason": "FieldValueInvalid",
                    "message": 'Invalid value: "x": no',
                    "field": "spec.a",
                },
            ],
        },
    ),
    "no problem": (
        errors.invalid("Pod", "policy", "", []),
        'Pod.policy "" is invalid: <nil>',
        {"group": "policy", "kind": "Pod"},
    ),
    "no route": (
        errors.route_not_found(),
        "the server could not find the requested resource",
        {},
    ),
    "no verb": (
        errors.method_not_allowed(),
        "the server does not allow this method on the requested resource",
        {},
    ),
}


@pytest.mark.parametrize(("error", "message", "details"), WORDS.values(), ids=WORDS.keys())
def test_words(error: ApiError, message: str, details: dict[str, Any]) -> None:
    status = error.to_status()

    assert (status["message"], status["details"]) == (message, details)


def test_a_client_error_that_kubernetes_reports_as_its_own_is_our_bad_request() -> None:
    ours, exact = (
        errors.client_error("why", compat) for compat in (Compat.SULLY, Compat.KUBERNETES)
    )

    assert (ours.to_status()["code"], ours.to_status()["reason"]) == (400, "BadRequest")
    assert (exact.to_status()["code"], "reason" in exact.to_status()) == (500, False)


def test_answers_may_report_how_to_go_on() -> None:
    error = Expired("too old")
    error.list_metadata = {"continue": "token"}

    assert error.to_status()["metadata"] == {"continue": "token"}
    assert isinstance(error, errors.Gone)
    assert not isinstance(Invalid("x"), NotFound)
