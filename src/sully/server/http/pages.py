"""Pages that are not objects and never change: version, documents."""

from datetime import datetime
from email.utils import format_datetime

import msgspec

from sully import __version__
from sully.machinery.serialization.codec import to_pretty_json
from sully.server.http.http_request import HttpRequest
from sully.server.negotiation import check_representation

PUBLIC = ("/version", "/healthz", "/livez", "/readyz")
_BELOW_PUBLIC = tuple(f"{page}/" for page in PUBLIC)

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


class StaticPage(msgspec.Struct, frozen=True):
    """A page that never changes while the server runs."""

    body: bytes
    media: str

    async def respond(self, http_request: HttpRequest) -> None:
        """Send the page."""
        check_representation(http_request.header("accept"), (self.media,))
        await http_request.respond(200, self.body, self.media)


def is_public(path: str) -> bool:
    """Report whether a page is served without credentials."""
    return path in PUBLIC or path.startswith(_BELOW_PUBLIC)


async def version(http_request: HttpRequest, now: datetime) -> None:
    """Serve `/version`, with the time, so that clients can compare their clock."""
    date = {"date": format_datetime(now.replace(microsecond=0), usegmt=True)}
    await http_request.respond(200, to_pretty_json(VERSION), headers=date)
