"""`POST /backup`: a consistent copy of the store, for cluster admins.

The answer is the database as the store keeps it, every secret included, and nothing else: the keys
of the data directory never travel. It is a POST so that a role which may read every page may not
read this; of the roles that exist from the start, only cluster-admin may post here.
"""

import asyncio
import os

from sully.machinery.errors import ServiceUnavailable, method_not_allowed
from sully.server.http.http_request import HttpRequest
from sully.store.base import Store
from sully.store.errors import StoreError

PATH = "/backup"
MEDIA = "application/vnd.sqlite3"
_CHUNK = 256 << 10


async def serve(http_request: HttpRequest, store: Store) -> None:
    """Send a copy of the store."""
    if http_request.method != "POST":
        raise method_not_allowed()
    await http_request.body()
    try:
        file = await store.snapshot()
    except StoreError as error:
        raise ServiceUnavailable(f"the store could not be copied: {error}") from error
    with file:
        size = os.fstat(file.fileno()).st_size
        await http_request.start(200, MEDIA, {"content-length": str(size)})
        # In a thread: a disk that is slow must not hold up everyone else.
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            await http_request.chunk(chunk)
        await http_request.chunk(b"", more=False)
