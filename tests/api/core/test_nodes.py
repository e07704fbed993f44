"""Nodes: defaults, validation, columns."""

import copy
from typing import Any

import pytest

from api.core.writing import RESOURCES, cells, create, update
from sully.api.core.pods.spec.dns import NOT_A_CIDR

Obj = dict[str, Any]
KEY = 'metadata.taints[1]: Duplicate value: {"Key":"k","Value":"","Effect":"NoSchedule"'

CREATED: dict[str, tuple[Obj, list[str]]] = {
    "nothing but a name": ({}, []),
    "status given": ({"status": {"capacity": {"cpu": "8", "pods": "10"}}}, []),
    "half a pod": (
        {"status": {"capacity": {"pods": "1500m"}, "allocatable": {"pods": "1"}}},
        ['status.capacity.pods: Invalid value: "1500m": must be an integer'],
    ),
    "taint twice": (
        {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}] * 2}},
        [f'{KEY},"TimeAdded":null}}: taints must be unique by key and effect pair'],
    ),
    "unknown effect": (
        {"spec": {"taints": [{"key": "k", "effect": "Frown"}]}},
        [
            'metadata.taints[0].effect: Unsupported value: "Frown": supported values:'
            ' "NoSchedule", "PreferNoSchedule", "NoExecute"'
        ],
    ),
}


@pytest.mark.parametrize(("body", "want"), CREATED.values(), ids=CREATED.keys())
def test_create(body: Obj, want: list[str]) -> None:
    assert create("nodes", body).texts() == want


def test_capacity_is_allocatable_unless_stated_otherwise() -> None:
    status = create("nodes", {"status": {"capacity": {"cpu": "8"}}}).obj["status"]

    assert status["allocatable"] == {"cpu": "8"}


UPDATED: dict[str, tuple[Obj, Obj, list[str]]] = {
    "address range set": ({}, {"podCIDR": "10.1.0.0/24"}, []),
    "address range changed": (
        {"podCIDR": "10.1.0.0/24"},
        {"podCIDR": "10.2.0.0/24"},
        ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
    ),
    "address range changed to something else": (
        {"podCIDR": "10.1.0.0/24"},
        {"podCIDR": "0"},
        [
            f'spec.podCIDRs[0]: Invalid value: "0": {NOT_A_CIDR}',
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        ],
    ),
    "provider changed": (
        {"providerID": "x://1"},
        {"providerID": "x://2"},
        ["spec.providerID: Invalid value: null: field cannot be modified once set"],
    ),
}


@pytest.mark.parametrize(("node_spec", "change", "want"), UPDATED.values(), ids=UPDATED.keys())
def test_update(node_spec: Obj, change: Obj, want: list[str]) -> None:
    old = create("nodes", {"spec": node_spec}).obj
    new = copy.deepcopy(old)
    new["spec"].update(change)

    assert update("nodes", new, old).texts() == want


def test_each_endpoint_writes_its_part() -> None:
    old = create("nodes", {}).obj
    new = copy.deepcopy(old)
    new["spec"]["unschedulable"] = True
    new["status"]["capacity"] = {"cpu": "1"}

    itself = update("nodes", new, old).obj
    status = update("nodes", new, old, sub="status").obj

    assert (itself["spec"], itself["status"]) == ({"unschedulable": True}, old["status"])
    assert (status["spec"], status["status"]["capacity"]) == ({}, {"cpu": "1"})


def test_address_twice() -> None:
    old = create("nodes", {}).obj
    new = copy.deepcopy(old)
    new["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}] * 2

    assert update("nodes", new, old, sub="status").texts() == [
        'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}'
    ]


READY = [{"type": "Ready", "status": "True"}]
ROWS: dict[str, tuple[Obj, Obj]] = {
    "nothing known": (
        {},
        {"Status": "Unknown", "Roles": "<none>", "Version": "", "OS-Image": "<unknown>"},
    ),
    "ready": ({"status": {"conditions": READY}}, {"Status": "Ready"}),
    "closed": (
        {
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            "spec": {"unschedulable": True},
        },
        {"Status": "NotReady,SchedulingDisabled"},
    ),
    "roles": (
        {
            "metadata": {
                "name": "n",
                "labels": {
                    "node-role.kubernetes.io/worker": "",
                    "kubernetes.io/role": "gpu",
                },
            }
        },
        {"Roles": "gpu,worker"},
    ),
    "addresses": (
        {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
        {"Internal-IP": "10.0.0.1", "External-IP": "<none>"},
    ),
}


@pytest.mark.parametrize(("body", "want"), ROWS.values(), ids=ROWS.keys())
def test_row(body: Obj, want: Obj) -> None:
    row = cells("nodes", create("nodes", body).obj)

    assert {name: row[name] for name in want} == want


def test_closed_nodes_can_be_selected() -> None:
    read = RESOURCES["", "nodes"].selectable["spec.unschedulable"]

    assert read(create("nodes", {}).obj) == "false"
    assert read(create("nodes", {"spec": {"unschedulable": True}}).obj) == "true"
