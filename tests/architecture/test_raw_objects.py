"""Objects are read as types; here is the one list of code that reads them as dictionaries, and why.

The packages `api`, `machinery` and `server` decode, validate, patch and store objects of any kind.
"""

import ast
from collections.abc import Iterator

import pytest

from architecture.project import SOURCE, modules

GENERIC = ("api", "machinery", "server")
RAW: dict[str, tuple[str, ...]] = {
    "it builds or completes the body of a request": (
        "cli/change/drain/cordons.py",
        "cli/change/taint/device_taints.py",
        "cli/change/taint/storable.py",
        "cli/change/taint/writes.py",
        "cli/dashboard/operations.py",
        "controllers/devicerules.py",
        "controllers/simulatednodes/nodes.py",
        "controllers/simulatednodes/preflight.py",
        "domain/devicepolicies/suppression.py",
        "domain/devices/device_rules.py",
        "domain/drain/rules.py",
        "domain/planning/rules/split.py",
        "domain/planning/rules/taint_rules.py",
        "domain/proofs/requests.py",
        "domain/simulated/machines.py",
        "domain/simulated/statuses.py",
        "install/chart.py",
        "install/chart_values.py",
        "planning/device_policies.py",
        "testing/builders.py",
    ),
    "a template is copied with all its fields, also those that no type has": (
        "cli/change/plan/workloads.py",
        "controllers/claims/creator.py",
        "controllers/workloads/daemonsets.py",
        "controllers/workloads/jobs.py",
        "controllers/workloads/pod_control.py",
        "controllers/workloads/statefulsets.py",
        "domain/claims/lifecycle.py",
        "domain/planning/workload_pods.py",
        "domain/scheduling/volumes/topology.py",
        "domain/workloads/history.py",
    ),
    "an object is written back with all its fields, also those of newer servers": (
        "cli/change/taint/cluster_taints.py",
        "cli/change/taint/clusters.py",
        "monitor/slices.py",
    ),
    "objects are of any kind or version": (
        "client/discovery/conversion.py",
        "domain/capabilities/fitting.py",
        "domain/placement/candidates.py",
        "planning/dryrun/dry_run.py",
        "views/snapshot/loading.py",
    ),
    "the server asks about an object as it stores it": (
        "domain/admission/policies.py",
        "domain/allocation/usage/exclusion.py",
        "domain/quota/devices.py",
        "domain/quota/pods.py",
        "domain/quota/services.py",
    ),
    "a shell waits for completions, and importing types takes longer than the request": (
        "cli/names.py",
    ),
}


def raw_reads(text: str) -> Iterator[int]:
    """Yield the lines that read `spec` or `status` of a dictionary."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Subscript(slice=ast.Constant("spec" | "status"), ctx=ast.Load()):
                yield node.lineno
            case ast.Call(
                func=ast.Attribute(attr="get"), args=[ast.Constant("spec" | "status"), *_]
            ):
                yield node.lineno


FOUND = {
    "a subscript": ('name = pod["spec"]["nodeName"]', 1),
    "a default": ('phase = (pod.get("status") or {}).get("phase")', 1),
    "with a default": ('phase = pod.get("status", {}).get("phase")', 1),
    "written": ('patch["spec"] = {"nodeName": ""}', 0),
    "a body": ('body = {"spec": {"nodeName": ""}}', 0),
    "typed": ("name = pod.spec.node_name", 0),
}


@pytest.mark.parametrize(("text", "want"), FOUND.values(), ids=FOUND.keys())
def test_finds_reads_of_dictionaries(text: str, want: int) -> None:
    assert len(list(raw_reads(text))) == want


def test_objects_are_read_as_types() -> None:
    others = (path for path in modules() if path.relative_to(SOURCE).parts[0] not in GENERIC)
    there = {
        path.relative_to(SOURCE).as_posix() for path in others if list(raw_reads(path.read_text()))
    }
    listed = [name for names in RAW.values() for name in names]

    new = sorted(there - set(listed))
    assert not new, f"read objects as a type, or state in RAW why not: {new}"
    assert sorted(listed) == sorted(there), "remove what is read as a type now"
