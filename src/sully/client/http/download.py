"""Downloads what an API server has in addition to objects, into a file.

Not a verb of `Transport`: no other server has what `sully backup` downloads.
"""

from __future__ import annotations

from typing import BinaryIO

from sully.client.http.connection_errors import unreachable
from sully.client.http.json_answers import Responses
from sully.client.kubeconfig.access import Access, tls_context
from sully.client.kubeconfig.credentials import AccessError
from sully.client.transport import UnreachableError
from sully.machinery.serialization.codec import from_json

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 300.0
"""The server sends nothing before its copy is complete; a slow disk may take minutes."""


class RefusedError(Exception):
    """The server rejected the request."""


async def download(access: Access, path: str, target: BinaryIO) -> None:
    """Post to a path and write the answer to a file."""
    import aiohttp

    limits = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS
    )
    url = access.server + path
    try:
        credential = await access.credentials.current()
        headers = {"Authorization": credential.authorization} if credential.authorization else {}
        async with (
            aiohttp.ClientSession(headers=headers, timeout=limits) as session,
            session.post(url, ssl=tls_context(access, credential), allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise RefusedError(
                    _text(answer.status, await Responses().read(answer.content.iter_any()))
                )
            async for chunk in answer.content.iter_chunked(1 << 20):
                target.write(chunk)
    except AccessError as error:
        raise UnreachableError(str(error)) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise unreachable(error, url) from error


def _text(code: int, body: bytes) -> str:
    try:
        status = from_json(body)
    except ValueError:
        status = None
    if isinstance(status, dict) and status.get("message"):
        return str(status["message"])
    return f"the server answered {code}"
