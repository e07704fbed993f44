"""Snapshots in files: every form that kubectl prints, and what is not a snapshot."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from typing import Any

import pytest
import yaml

import manifests
from sully.client.transport import Key
from sully.machinery.serialization.codec import to_yaml
from sully.testing.builders import GPU
from sully.testing.clock import NOON
from sully.views.kinds import CLAIMS, CONSUMER_PODS, PATCHES, RULES, SLICES
from sully.views.snapshot.file import (
    SnapshotError,
    documents_in,
    from_documents,
    write_snapshot,
)
from sully.views.snapshot.kinds import EVERYTHING
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

Obj = dict[str, Any]

SLICE = manifests.slice_("s", "node-1") | {
    "metadata": {"name": "s", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
}
SLICE["spec"]["pool"]["name"] = "pool-1"

WHOLE_POD = manifests.pod("p", {"nodeName": "node-1"}, namespace="ns", uid="v")
LIST: Obj = {"apiVersion": "v1", "kind": "List", "items": [SLICE, WHOLE_POD]}
POD = {part: WHOLE_POD[part] for part in ("metadata", "spec")}
POD_LIST: Obj = {"apiVersion": "v1", "kind": "PodList", "items": [POD]}
UNKNOWN: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}


def text(*documents: Any) -> bytes:
    return yaml.safe_dump_all(documents).encode()


FILES = {
    "a list": text(LIST),
    "documents": text(SLICE, WHOLE_POD),
    "lists as documents": text(POD_LIST, {**LIST, "items": [SLICE]}),
    "a list in a list": text({**LIST, "items": [SLICE, POD_LIST]}),
    "json": json.dumps(LIST).encode(),
    "json with spaces before it": b"\n  " + json.dumps(LIST, indent=2).encode(),
    "what does not count beside it": text(LIST, UNKNOWN, None),
    "several documents of json": json.dumps(SLICE).encode()
    + b"\n---\n"
    + json.dumps(WHOLE_POD).encode(),
    "json, an object a line": "\n".join(map(json.dumps, (SLICE, WHOLE_POD))).encode(),
    "json, one object after the other": b"".join(
        json.dumps(item, indent=2).encode() for item in (SLICE, POD_LIST)
    ),
    "packed": gzip.compress(text(LIST)),
    "from a Windows shell": text(LIST).decode().encode("utf-16"),
    "with a mark before it": b"\xef\xbb\xbf" + json.dumps(LIST).encode(),
}


def read_snapshot(data: bytes, *, now: datetime) -> Snapshot:
    return from_documents(documents_in(data), now=now)


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_forms(data: bytes) -> None:
    snapshot = read_snapshot(data, now=NOON)

    assert snapshot.taken == NOON
    assert snapshot.inventory.device(GPU) is not None
    pod = snapshot.get(CONSUMER_PODS, Key("ns", "p"))
    assert pod is not None
    assert pod.spec.node_name == "node-1"
    gap = snapshot.gap(RULES)
    assert gap is not None
    assert gap.reason == "not in the file"


def test_times_without_quotes_are_texts() -> None:
    plain = text(LIST).replace(b"'2026-01-01T00:00:00Z'", b"2026-01-01T00:00:00Z")

    (result,) = read_snapshot(plain, now=NOON).of(SLICES).values()

    assert result.metadata.creation_timestamp is not None


def test_an_older_version_is_converted() -> None:
    old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
    }

    claim = read_snapshot(text(old), now=NOON).get(CLAIMS, Key("ns", "c"))

    assert claim is not None
    (request,) = claim.spec.devices.requests or ()
    assert request.exactly is not None
    assert request.exactly.device_class_name == "gpu"


def test_a_patch_that_is_a_custom_resource() -> None:
    patch = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": "p"},
        "spec": {"devices": {"capacity": {"memory": {"value": 3}}}},
    }

    result = read_snapshot(text(patch), now=NOON).get(PATCHES, Key("", "p"))

    assert result is not None
    assert result.spec.devices.capacity["memory"].value == "3"


BAD = {
    "nothing": (b"", "no object of a supported kind"),
    "only what does not count": (text(UNKNOWN), "no object of a supported kind"),
    "a text": (b"hello", "it has no kind"),
    "no yaml": (b"{a: [}", "invalid YAML"),
    "json that breaks off": (json.dumps(SLICE).encode()[:-1], "invalid YAML"),
    "no text": (b"\x80abc", "not a text file"),
    "packed, and cut off": (gzip.compress(text(LIST))[:-9], "invalid gzip file"),
    "nested too deeply": (b"a: " + b"[" * 300 + b"]" * 300, "invalid YAML: exceeded max depth"),
    "no name": (text({**SLICE, "metadata": {}}), "ResourceSlice: metadata.name is required"),
    "a version from the future": (
        text({**SLICE, "apiVersion": "resource.k8s.io/v9"}),
        "ResourceSlice s: unknown version 'v9'",
    ),
    "no time": (text({**LIST, "takenTime": "noon"}), "takenTime"),
}


@pytest.mark.parametrize(("data", "complaint"), BAD.values(), ids=BAD)
def test_what_is_not_a_snapshot(data: bytes, complaint: str) -> None:
    with pytest.raises(SnapshotError, match=complaint):
        read_snapshot(data, now=NOON)


def test_everything_there_is_to_ask_about_is_saved() -> None:
    assert sorted(kind.plural for kind in EVERYTHING) == [
        "addonplacementscores",
        "clustertaintpolicies",
        "daemonsets",
        "deployments",
        "deviceclasses",
        "devicemaintenances",
        "devicetaintpolicies",
        "devicetaintrules",
        "evictionrecords",
        "jobs",
        "managedclusters",
        "managedclustersetbindings",
        "managedclustersets",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "placementdecisions",
        "placements",
        "poddisruptionbudgets",
        "pods",
        "replicasets",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslicepatches",
        "resourceslices",
        "statefulsets",
        "storageclasses",
        "taintrecords",
    ]


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "yaml"])
def test_what_is_written_is_read_again(as_json: bool) -> None:
    kinds = {kind.kind: kind for kind in EVERYTHING}
    managed = {"managedFields": [{"manager": "x"}]}
    shown = {**SLICE, "metadata": SLICE["metadata"] | managed}
    rule = {"metadata": {"name": "r", "managedFields": [{"manager": "alice"}]}}
    whole = Snapshot(
        [
            Objects(kinds["ResourceSlice"], [shown]),
            Objects(kinds["Pod"], [POD]),
            Objects(kinds["DeviceTaintRule"], [rule]),
        ],
        taken=NOON,
    )

    data = write_snapshot(whole, as_json=as_json)

    again = read_snapshot(data, now=NOON.replace(year=1999))
    assert data.count(b"managedFields") == data.count(b"alice") == 1
    assert again.taken == NOON
    assert again.of(SLICES).keys() == {Key("", "s")}
    assert again.of(CONSUMER_PODS).keys() == {Key("ns", "p")}
    assert not again.of(PATCHES)


@pytest.mark.parametrize("as_json", [True, False])
def test_what_was_listed_and_empty_is_not_missing(as_json: bool) -> None:
    hidden = Gap(next(kind for kind in EVERYTHING if kind.kind == "Node"), "not allowed")
    taken = Snapshot((), taken=NOON, gaps=[hidden])

    read = read_snapshot(write_snapshot(taken, as_json=as_json), now=NOON)

    assert [(gap.kind.kind, gap.reason) for gap in read.gaps] == [("Node", "not in the file")]
    assert len(read.of(CONSUMER_PODS)) == 0


@pytest.mark.parametrize("items", [{}, {"ResourceSlice": SLICE, "Pod": POD}], ids=["none", "some"])
def test_both_forms_report_the_same(items: dict[str, Any]) -> None:
    kinds = {kind.kind: kind for kind in EVERYTHING}
    taken = Snapshot([Objects(kinds[kind], [entry]) for kind, entry in items.items()], taken=NOON)

    whole = json.loads(write_snapshot(taken, as_json=True))

    assert write_snapshot(taken, as_json=False) == to_yaml(whole)


@pytest.mark.parametrize("as_json", [True, False])
def test_one_namespace_is_not_taken_for_all(as_json: bool) -> None:
    of_all = write_snapshot(Snapshot([], taken=NOON), as_json=as_json)
    of_one = write_snapshot(Snapshot([], taken=NOON), as_json=as_json, namespace="n")

    snapshot = read_snapshot(of_one, now=NOON)
    both = from_documents([*documents_in(of_one), *documents_in(of_all)], now=NOON)

    gap = snapshot.gap(CONSUMER_PODS)
    assert gap is not None
    assert (gap.reason, gap.only_namespace) == ("not in the file", "n")
    assert snapshot.gap(SLICES) is None
    assert both.gaps == ()


def test_several_files_are_one_snapshot() -> None:
    documents = [*documents_in(text(SLICE)), *documents_in(json.dumps(POD_LIST).encode())]

    read = from_documents(documents, now=NOON)

    assert (len(read.of(SLICES)), len(read.of(CONSUMER_PODS))) == (1, 1)


def test_an_object_whose_metadata_is_not_a_mapping() -> None:
    with pytest.raises(SnapshotError, match=r"metadata\.name is required"):
        read_snapshot(text({**SLICE, "metadata": "s"}), now=NOON)
