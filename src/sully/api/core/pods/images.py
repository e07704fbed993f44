"""How references to images are read: only the tag matters here."""

import re

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[a-zA-Z0-9][-a-zA-Z0-9.]*(?::[0-9]+)?/|\[[0-9a-fA-F:]+\](?::[0-9]+)?/)?{_COMPONENT}"
    rf"(?:/{_COMPONENT})*(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?P<digest>@[^@]+)?",
    re.ASCII,
)


def pull_policy(image: str) -> str:
    """Return the pull policy: Always for the tag `latest`, whose content changes."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
