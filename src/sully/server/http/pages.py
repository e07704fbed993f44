"""Pages that are not objects: version, health, metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sully import __version__
from sully.machinery.codec import to_pretty_json
from sully.server.http.http_request import HttpRequest

TEXT = "text/plain; charset=utf-8"
PUBLIC = ("/version", "/healthz", "/livez", "/readyz")

# The API level of Kubernetes; the build is ours.
VERSION = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": f"v1.37.0+sully-{__version__}",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}

Check = Callable[[], str]  # empty: fine; else what is wrong


@dataclass(frozen=True, slots=True)
class StaticPage:
    """A page that never changes while the server runs."""

    body: bytes
    media: str

    async def respond(self, http_request: HttpRequest) -> None:
        """Send the page."""
        await http_request.respond(200, self.body, self.media)


def is_public(path: str) -> bool:
    """Report whether a page is served without credentials."""
    return any(path == page or path.startswith(page + "/") for page in PUBLIC)


async def version(http_request: HttpRequest) -> None:
    """Serve `/version`."""
    await http_request.respond(200, to_pretty_json(VERSION))


async def health(http_request: HttpRequest, checks: Mapping[str, Check]) -> None:
    """Serve a health page, one check of it, or the verbose form."""
    page, _, single = http_request.path.strip("/").partition("/")
    excluded = http_request.query.get("exclude", "")
    chosen = {name: check for name, check in checks.items() if name != excluded}
    if single:
        if single not in checks:
            await http_request.respond(404, b"404 page not found\n", TEXT)
            return
        chosen = {single: checks[single]}
    lines = [(name, check()) for name, check in chosen.items()]
    failed = [name for name, problem in lines if problem]
    if not failed and "verbose" not in http_request.query:
        await http_request.respond(200, b"ok", TEXT)
        return
    text = "".join(
        f"[-]{name} failed: {problem}\n" if problem else f"[+]{name} ok\n"
        for name, problem in lines
    )
    text += f"{page} check failed\n" if failed else f"{page} check passed\n"
    await http_request.respond(500 if failed else 200, text.encode(), TEXT)
