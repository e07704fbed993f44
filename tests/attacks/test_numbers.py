"""Numbers that Python cannot convert: requests with them are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hostile.target import Target
from manifests import body

pytestmark = pytest.mark.slow
TOO_LONG = "9" * 5000
LEADING = "0" * 5000 + "1"
"""Python counts the zeros, too."""
NO_FLOAT = "1" + "0" * 400
JSON, YAML = "application/json", "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Case:
    path: str
    body: str | None = None
    method: str = "POST"
    media: str = JSON
    code: int = 400


CONFIG = "/api/v1/namespaces/default/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGET = '{"metadata":{"name":"b"},"spec":{"selector":{},"minAvailable":"%s%%"}}'
CASES = {
    "an integer that no float holds": Case(CONFIG, f'{{"metadata":{NO_FLOAT}}}'),
    "as a generation": Case(CONFIG, f'{{"metadata":{{"generation":{NO_FLOAT}}}}}'),
    "in a patch": Case(
        f"{CONFIG}/kube-root-ca.crt", f'{{"data":{NO_FLOAT}}}', method="PATCH", media=MERGE
    ),
    "in YAML": Case(f"{CONFIG}/a?fieldManager=m", f"data: {NO_FLOAT}", method="PATCH", media=YAML),
    "in YAML, binary": Case(
        f"{CONFIG}/a?fieldManager=m", "data: 0b" + "1" * 20_000, method="PATCH", media=YAML
    ),
    "in a label selector": Case(f"{CONFIG}?labelSelector=a<{TOO_LONG}", method="GET"),
    "in a label selector, with zeros": Case(f"{CONFIG}?labelSelector=a<{LEADING}", method="GET"),
    "a percentage": Case(BUDGETS, BUDGET % TOO_LONG, code=422),
    "a percentage with zeros": Case(BUDGETS, BUDGET % LEADING, code=201),
    "the index of a job": Case(
        f"{JOBS}/indexed/status",
        f'{{"status":{{"completedIndexes":"{TOO_LONG}","succeeded":1}}}}',
        method="PATCH",
        media=MERGE,
        code=422,
    ),
    "the index of a job with zeros": Case(
        f"{JOBS}/indexed/status",
        f'{{"status":{{"failedIndexes":"{LEADING}"}}}}',
        method="PATCH",
        media=MERGE,
        code=422,
    ),
}


@pytest.fixture(scope="module", autouse=True)
def job(target: Target) -> None:
    """Create a Job that has indexes."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 3, "template": template}
    target.admin.post(JOBS, body("Job", "indexed", spec)).ok()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_is_answered(target: Target, case: Case) -> None:
    content = None if case.body is None else case.body.encode()

    answer = target.admin.call(case.method, case.path, content, case.media)

    assert answer.code == case.code, answer.body[:600]
