"""What command lines select: short forms, flags, and every input that is refused."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from cli.commandlines import parsed
from manifests import Obj, slice_, stored
from sully.cli.command import CommandError
from sully.cli.selection.args import (
    CLASS,
    DEVICE,
    DEVICE_KINDS,
    NODE,
    SelectionArgs,
    read_selection,
    split_kind,
)
from sully.cli.selection.device_selection import ALL_FIELDS, DeviceSelection, resolve
from sully.testing.clock import FakeClock
from sully.views.snapshot.file import from_documents
from sully.views.snapshot.snapshot import Snapshot

DRIVER = "gpu.example.com"


def gpu(name: str, **attributes: str) -> Obj:
    return {"name": name, "attributes": {k: {"string": v} for k, v in attributes.items()}}


def cel_class(name: str, expression: str) -> Obj:
    return stored(manifests.device_class(name, expression))


def node(name: str, zone: str) -> Obj:
    return stored(manifests.node(name, labels={"zone": zone}))


@pytest.fixture(scope="module")
def fleet() -> Snapshot:
    """Return two nodes with two GPUs each, one with ten of another driver, and a network device."""
    root = "resource.kubernetes.io/pcieRoot"
    ones = [
        gpu(
            "gpu-0", model="a", uuid="GPU-aaaa-1", pcieBusID="0000:3B:00.0", **{root: "pci0000:3a"}
        ),
        gpu(
            "gpu-1", model="b", uuid="GPU-aaab-2", pcieBusID="0000:3c:00.0", **{root: "pci0000:3a"}
        ),
    ]
    twos = [gpu("gpu-0", model="a", uuid="GPU-bbbb-3"), gpu("gpu-1", model="a")]
    nics = [gpu("nic-1"), gpu("nic-10"), gpu("port-x")]
    return from_documents(
        [
            stored(slice_("node-1", "node-1", *ones)),
            stored(slice_("node-2", "node-2", *twos)),
            stored(slice_("nics", "nics", *nics, driver="nic.example.com", nodeName="node-2")),
            stored(slice_("net", "net", gpu("shared"), driver="net.example.com", allNodes=True)),
            cel_class("gpus", f"device.driver == '{DRIVER}'"),
            cel_class("nics", "device.driver == 'nic.example.com'"),
            cel_class("none", "false"),
            node("node-1", "a"),
            node("node-2", "b"),
        ],
        now=FakeClock().now(),
    )


A0, A1 = f"{DRIVER}/node-1/gpu-0", f"{DRIVER}/node-1/gpu-1"
B0, B1 = f"{DRIVER}/node-2/gpu-0", f"{DRIVER}/node-2/gpu-1"
N1, N10, NX = (f"nic.example.com/nics/{name}" for name in ("nic-1", "nic-10", "port-x"))
MODEL_A = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].model == 'a'"


def args(*names: str, kind: str = DEVICE, **more: Any) -> SelectionArgs:
    return SelectionArgs(kind=kind, names=names, **more)


SELECTED = {
    "a full name": (args(A0), [A0]),
    "a driver": (args(DRIVER), [A0, A1, B0, B1]),
    "a driver and a pool": (args(f"{DRIVER}/node-2"), [B0, B1]),
    "a glob": (args("*/*/gpu-?"), [A0, A1, B0, B1]),
    "node/device": (args("node-1/gpu-0"), [A0]),
    "node/device in a pool of another name": (args("node-2/nic-1"), [N1]),
    "pool/device": (args("nics/nic-1"), [N1]),
    "a node, of all drivers": (args("node-2"), [B0, B1, N1, N10, NX]),
    "a node by kind": (args("node-1", kind=NODE), [A0, A1]),
    "a node as kubectl prints it": (args("node/node-1", kind=NODE), [A0, A1]),
    "nodes as kubectl prints them": (
        args("node/node-1", "node/node-2"), [A0, A1, B0, B1, N1, N10, NX],
    ),
    "a slice as kubectl prints it": (args("resourceslice.resource.k8s.io/node-1"), [A0, A1]),
    "a device name that is unique": (args("port-x"), [NX]),
    "a UUID": (args("gpu-AAAA-1"), [A0]),
    "a prefix of a UUID": (args("GPU-b"), [B0]),
    "a prefix of a name": (args("node-2/port"), [NX]),
    "a name that is a prefix of another": (args("nic-1"), [N1]),
    "several names, each device once": (args("node-1", A0), [A0, A1]),
    "a class": (args(classes=("nics",)), [N1, N10, NX]),
    "two classes": (args(classes=("nics", "gpus")), [A0, A1, B0, B1, N1, N10, NX]),
    "a class on a node": (args("node-2", kind=NODE, classes=("gpus",)), [B0, B1]),
    "CEL": (args(expressions=(MODEL_A,)), [A0, B0, B1]),
    "CEL that fails elsewhere": (
        args(DRIVER, expressions=(f"device.attributes['{DRIVER}'].model == 'b'",)),
        [A1],
    ),
    "two expressions": (args(expressions=(MODEL_A, "true")), [A0, B0, B1]),
    "labels of nodes": (args(labels="zone=a"), [A0, A1]),
    "labels and a class": (args(labels="zone=b", classes=("gpus",)), [B0, B1]),
    "a UUID flag": (args(uuids=("gpu-bbbb-3",)), [B0]),
    "two UUIDs": (args(uuids=("GPU-bbbb-3", "GPU-aaaa-1")), [A0, B0]),
    "a PCI address": (args(pci=("3b:00.0",)), [A0]),
    "a PCI address with its domain": (args(pci=("0000:3C:00.0",)), [A1]),
    "a PCIe root": (args(pci=("pci0000:3a",)), [A0, A1]),
}  # fmt: skip


def selected(selection: DeviceSelection) -> list[str]:
    return [str(device) for device in selection.devices]


@pytest.mark.parametrize(("selecting", "want"), SELECTED.values(), ids=SELECTED)
def test_selected(fleet: Snapshot, selecting: SelectionArgs, want: list[str]) -> None:
    assert selected(resolve(fleet, selecting)) == want


REFUSED = {
    "a typo in a device": (
        args("node-1/gpu0"),
        'device "gpu0" not found on node "node-1" (did you mean "gpu-0"?)',
    ),
    "a typo in a node": (args("nod-1"), 'device "nod-1" not found (did you mean "node-1"?)'),
    "a typo in a node and a device": (args("nod-1/gpu-0"), '(did you mean "node-1/gpu-0"?)'),
    "a node that is none": (args("node-3", kind=NODE), 'no devices found on node "node-3" (did'),
    "a typo in a driver": (args("gpu.example.con/node-1/gpu-0"), 'driver "gpu.example.con" not'),
    "a node that is close to several": (args("node-3", kind=NODE), '(did you mean "node-1"?)'),
    "a typo in a full name": (args(f"{DRIVER}/node-1/gpu0"), 'in pool "node-1" (did you mean "g'),
    "a glob that matches nothing": (args("*/rack*"), 'no pool matches "rack*"'),
    "one of several": (args(A0, "gpu-9"), 'device "gpu-9" not found'),
    "a device of another number": (args("nics/nic-100"), '"nics/nic-100" not found'),
    "a name that several have": (args("gpu-1"), f'"gpu-1" matches 2 devices: {A1}, {B1}\n'),
    "a prefix that several have": (args("GPU-aaa"), f'"GPU-aaa" matches 2 devices: {A0}, {A1}\n'),
    "a prefix that is too short": (args("por"), 'device "por" not found'),
    "a prefix within a number": (args("node-2/nic"), '"node-2/nic" matches 2 devices'),
    "a class as a device": (args("deviceclass.resource.k8s.io/gpus"), "use --class gpus"),
    "a class that does not exist": (args(classes=("gpu",)), 'deviceclass "gpu" not found (did yo'),
    "a class without devices": (
        args(classes=("none",)),
        "no devices found among 8: devices of class none",
    ),
    "CEL that does not compile": (args(expressions=("device.",)), "--cel device.: compile error"),
    "CEL of another type": (args(expressions=("1",)), "--cel 1: compile error"),
    "CEL that fails": (
        args(expressions=(f"device.attributes['{DRIVER}'].model == 'b'",)),
        "on device net.example.com/net/shared: runtime error: no such key",
    ),
    "CEL with a typo in an attribute": (
        args(DRIVER, expressions=(f"device.attributes['{DRIVER}'].modle == 'b'",)),
        'no such key: modle (did you mean "model"?)\n  attributes of this device: ',
    ),
    "CEL that selects nothing": (
        args(DRIVER, expressions=("false",)),
        f"no devices found among 4: {DRIVER} matching false",
    ),
    "labels that are none": (args(labels="zone=="), "-l zone==:"),
    "labels of no node": (args(labels="zone=c"), "kubectl get nodes --show-labels"),
    "a UUID of no device": (args(uuids=("GPU-cccc",)), "--uuid GPU-cccc: no device has it"),
    "a UUID that drivers do not publish": (
        args("nics/nic-1", uuids=("GPU-cccc",)),
        "no device publishes such an attribute",
    ),
    "a PCI address of no device": (args(pci=("ff:00.0",)), "--pci ff:00.0: no device has it"),
    "not a pattern": (args("a//b"), 'invalid device pattern "a//b"'),
    "a short form that may be missing": (
        args("node-9/gpu-0", allow_missing=True),
        "with --allow-missing, use DRIVER/POOL/DEVICE",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("selecting", "want"), REFUSED.values(), ids=REFUSED)
def test_refused(fleet: Snapshot, selecting: SelectionArgs, want: str) -> None:
    with pytest.raises(CommandError) as raised:
        resolve(fleet, selecting)

    assert want in str(raised.value)


STRAY = {
    "a star that the shell expanded": (
        args("README.md", "src"),
        ("src", "README.md"),
        "",
        "as if the shell had expanded a *",
    ),
    "even if the files are called like nodes": (
        args("node-1", "node-2"),
        ("node-2", "node-1"),
        "",
        "as if the shell had expanded a *",
    ),
    "all files, which may have been typed": (
        args("node-1", "node-2", kind="node"),
        ("node-2", "node-1"),
        "",
        "for all devices: device '*'\n  if you typed the names: node/node-1 node/node-2$",
    ),
    "names of nodes, which are not patterns": (
        args("node-*", "*", kind="node"),
        (),
        "",
        'no devices found on node "node-*": names of nodes are not patterns\n'
        'no devices found on node "*": names of nodes are not patterns\n'
        "  for devices in pools that are called like nodes: device '*/node-*' '*/*'\n"
        "  for nodes with labels: device -l LABELS\n",
    ),
    "a file among names": (args("node-1", "README.md"), ("README.md", "x"), "", "quote patterns"),
    "the rest of a reason": (args(A0, "broken"), (), "fan", "quote a reason of several words"),
}  # fmt: skip


@pytest.mark.parametrize(("selecting", "files", "reason", "want"), STRAY.values(), ids=STRAY)
def test_stray_arguments(
    fleet: Snapshot, selecting: SelectionArgs, files: tuple[str, ...], reason: str, want: str
) -> None:
    with pytest.raises(CommandError, match=want.replace("*", r"\*")):
        resolve(fleet, selecting, files=files, reason=reason)


def test_files_that_are_called_like_nodes_can_be_named(fleet: Snapshot) -> None:
    selecting = args("node/node-1", "node/node-2", kind="node")

    assert set(selected(resolve(fleet, selecting, files=("node-1", "node-2")))) > {A0, A1}


def test_a_file_that_is_called_like_a_node_does_not_matter(fleet: Snapshot) -> None:
    assert selected(resolve(fleet, args("node-1"), files=("node-1", "x"))) == [A0, A1]


KUBERNETES: frozenset[str] = frozenset()
RULES: dict[str, tuple[SelectionArgs, frozenset[str], list[str], bool]] = {
    "a full name": (args(A0), KUBERNETES, ["node-1-gpu-0"], False),
    "a pool, also what is added to it": (args("*/node-1"), KUBERNETES, ["node-1"], False),
    "everything": (args("*"), KUBERNETES, ["all"], False),
    "a node": (args("node-1"), KUBERNETES, ["node-1"], False),
    "a short form": (args("port-x"), KUBERNETES, ["node-2-port-x"], False),
    "a glob of pools": (args(f"{DRIVER}/node-?"), KUBERNETES, ["node-1", "node-2"], True),
    "a class": (args(classes=("gpus",)), KUBERNETES, ["node-1", "node-2"], True),
    "a class, by itself": (args(classes=("gpus",)), ALL_FIELDS, ["gpus"], False),
    "two classes": (args(classes=("gpus", "nics")), ALL_FIELDS, ["gpus", "nics"], False),
    "CEL": (args(expressions=(MODEL_A,)), KUBERNETES, ["node-1-gpu-0", "node-2"], True),
    "CEL, by itself": (args(expressions=(MODEL_A,)), ALL_FIELDS, ["all"], False),
    "labels have no selector anywhere": (
        args(labels="zone=a", classes=("gpus",)), ALL_FIELDS, ["node-1"], True,
    ),
    "a UUID is a device, not its pool": (
        args(uuids=("GPU-aaaa-1", "GPU-aaab-2")),
        ALL_FIELDS,
        ["node-1-gpu-0", "node-1-gpu-1"],
        False,
    ),
    "a device that does not exist yet": (
        args(f"{DRIVER}/node-9/gpu-0", allow_missing=True), KUBERNETES, ["node-9-gpu-0"], False,
    ),
    "a class that does not exist yet": (
        args(classes=("new",), allow_missing=True), ALL_FIELDS, ["new"], False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("selecting", "fields", "want", "expanded"), RULES.values(), ids=RULES)
def test_rules(
    fleet: Snapshot,
    selecting: SelectionArgs,
    fields: frozenset[str],
    want: list[str],
    expanded: bool,
) -> None:
    selection = resolve(fleet, selecting, fields)

    assert [selector.label for selector in selection.selectors] == want
    assert selection.expanded == expanded
    assert ("appear later" in selection.note) == expanded


def test_a_missing_class_cannot_be_expanded(fleet: Snapshot) -> None:
    with pytest.raises(CommandError, match="no devices found"):
        resolve(fleet, args(classes=("new",), allow_missing=True), KUBERNETES)


KINDS = {
    "device a b": (DEVICE, ("a", "b")),
    "nodes a": (NODE, ("a",)),
    "deviceclass a": (CLASS, ("a",)),
    "node/a node/b": (NODE, ("node/a", "node/b")),
    "node/a.example.com": (NODE, ("node/a.example.com",)),
    "deviceclass.resource.k8s.io/gpus": (CLASS, ("deviceclass.resource.k8s.io/gpus",)),
}


@pytest.mark.parametrize(("line", "want"), KINDS.items(), ids=KINDS)
def test_kinds(line: str, want: tuple[str, tuple[str, ...]]) -> None:
    assert split_kind(line.split()) == want


NO_KINDS = {
    "": "",
    "node-7": "for example: node node-7",
    "gpu-0": "for example: node gpu-0",
    "node-7/gpu-0": "for example: device node-7/gpu-0",
    "gpu node-7/gpu-0": "for example: device node-7/gpu-0",
    "nod a": 'did you mean "node"?',
    "pod/web": "to find its devices:  sully explain pod/web",
    "devicetaintrule.resource.k8s.io/r": "to delete rules:  sully untaint rule NAME...",
}


@pytest.mark.parametrize(("line", "want"), NO_KINDS.items(), ids=NO_KINDS)
def test_what_is_not_a_kind(line: str, want: str) -> None:
    with pytest.raises(CommandError, match="one of") as refused:
        split_kind(line.split())

    assert want in str(refused.value)


@pytest.mark.parametrize("kind", DEVICE_KINDS)
@pytest.mark.parametrize("names", [[""], ["a", " "]], ids=["only", "second"])
def test_empty_names(kind: str, names: list[str]) -> None:
    """A shell makes them of variables that are not set."""
    with pytest.raises(CommandError, match=f"the name of a {kind} is empty") as refused:
        read_selection(parsed("cordon", kind), kind, names)

    assert refused.value.code == 2


def test_labels_of_nodes_as_kubectl_takes_them() -> None:
    with pytest.raises(CommandError, match="for nodes with labels: device -l zone=a"):
        read_selection(parsed("drain", "node", "-l", "zone=a"), NODE, ())
