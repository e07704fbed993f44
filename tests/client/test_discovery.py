"""What a server offers over HTTP is what its scheme has."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from client.foreign import connected
from sully.client.discovery.resources import APIResource, discover, of_scheme
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.client.transport import UnreadableError
from sully.controllers.garbagecollection.owners import collected_kinds
from sully.controllers.namespaces.controller import namespaced_kinds
from sully.machinery.compat import Compat
from sully.testing.cluster import in_process


def by_name(served: tuple[APIResource, ...]) -> dict[tuple[str, str], Any]:
    return {
        (item.group, item.plural): (
            item.kind,
            item.versions,
            item.namespaced,
            item.verbs,
            item.alias,
        )
        for item in served
    }


@pytest.mark.parametrize("strict", [False, True], ids=["ours", "reference"])
async def test_the_embedded_server_shows_what_it_has(strict: bool) -> None:
    async with in_process(compat=Compat.KUBERNETES if strict else Compat.SULLY) as plane:
        access = load_kubeconfig([plane.kubeconfig], required=True).access()
        async with HttpTransport(access) as http:
            asked = await discover(http)
        known = of_scheme(plane.api.scheme)

    assert by_name(asked) == by_name(known)
    assert set(collected_kinds(asked).all) == set(collected_kinds(known).all)
    assert set(namespaced_kinds(asked)) == set(namespaced_kinds(known))


async def test_a_server_that_is_too_old_is_named() -> None:
    async def old(_: web.Request) -> web.Response:
        return web.json_response({"kind": "APIVersions", "versions": ["v1"]})

    async with connected(old) as http:
        with pytest.raises(UnreadableError, match="does not support aggregated discovery"):
            await discover(http)


async def test_what_is_not_a_document_is_named() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>", content_type="application/json")

    async with connected(page) as http:
        with pytest.raises(UnreadableError, match="/api: the response is not JSON"):
            await discover(http)
