"""The files of the page, read once: a request is looked up by its exact path, never on disk."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from sully.dashboard.http import Request, Response

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"


class StaticFiles:
    """The files below static/."""

    def __init__(self) -> None:
        self._files = dict(_files(files("sully.dashboard") / "static", ""))

    def serve(self, request: Request) -> Response | None:
        """Return a file, or None if there is no such one."""
        name = request.path.removeprefix("/") or INDEX
        if name not in self._files:
            return None
        data, tag = self._files[name]
        # A browser asks each time, so that no old page meets a new server.
        headers = (("cache-control", "no-cache"), ("etag", tag))
        kind = _TYPES[name[name.rindex(".") :]]
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", kind, headers)
        return Response(200, data, kind, headers)


def _files(folder: Traversable, prefix: str) -> list[tuple[str, tuple[bytes, str]]]:
    files = []
    for item in folder.iterdir():
        name = f"{prefix}{item.name}"
        if item.is_dir():
            files += _files(item, f"{name}/")
        elif any(name.endswith(ending) for ending in _TYPES):
            data = item.read_bytes()
            files.append((name, (data, f'"{hashlib.sha256(data).hexdigest()[:32]}"')))
    return files
