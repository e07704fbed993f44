"""Resolves hosts, without the addresses to which no request may go."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from sully.machinery.formats.addresses import is_refused

if TYPE_CHECKING:
    import aiohttp


class RefusedAddressError(OSError):
    """A host has only addresses to which no request may go."""


def guarded_resolver() -> aiohttp.ThreadedResolver:
    """Return a resolver for requests to hosts that a configuration or a policy names."""
    from aiohttp import ThreadedResolver
    from aiohttp.abc import ResolveResult

    class Resolver(ThreadedResolver):
        """Leaves out refused addresses."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            addresses = await super().resolve(host, port, family)
            allowed = [one for one in addresses if not is_refused(one["host"])]
            if not allowed:
                raise RefusedAddressError(
                    f"host {host} has a link-local, multicast or unspecified address"
                )
            return allowed

    return Resolver()
