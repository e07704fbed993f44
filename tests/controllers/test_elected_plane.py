"""A control plane whose own controllers wait for a lease, as replicas over one store will."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manifests import body
from sully.app import Config, running
from sully.client.direct import DirectTransport
from sully.client.leases import LEASES
from sully.controller_context import LEASE
from sully.controllers.framework.kinds import SERVICE_ACCOUNTS


def elected(folder: Path) -> Config:
    return Config(data_dir=folder, port=0, leader_elect=True)


def held_by_another() -> dict[str, Any]:
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
    return body("Lease", LEASE.name, spec, namespace=LEASE.namespace)


async def test_it_leads_with_no_more_rights_than_its_role_gives(tmp_path: Path) -> None:
    async with running(elected(tmp_path)) as plane:
        access = DirectTransport(plane.direct())
        during = await access.get(LEASES, LEASE)
        accounts = (await access.list(SERVICE_ACCOUNTS)).items
    async with running(Config(data_dir=tmp_path, port=0)) as plane:
        after = await DirectTransport(plane.direct()).get(LEASES, LEASE)

    assert during.holder
    assert len(accounts) >= 4
    assert not after.holder


async def test_it_serves_while_another_leads(tmp_path: Path) -> None:
    alone = Config(data_dir=tmp_path, port=0, controllers=frozenset())
    async with running(alone) as plane:
        await DirectTransport(plane.direct()).create(LEASES.read_as(dict), held_by_another())

    async with running(elected(tmp_path)) as plane:
        access = DirectTransport(plane.direct())
        holder_identity = (await access.get(LEASES, LEASE)).holder
        accounts = (await access.list(SERVICE_ACCOUNTS)).items

    assert (holder_identity, list(accounts)) == ("another", [])
