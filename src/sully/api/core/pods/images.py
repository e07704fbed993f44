"""How references to images are read: only the tag matters here."""

import re

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[a-zA-Z0-9][-a-zA-Z0-9.]*(?::[0-9]+)?/|\[[0-9a-fA-F:]+\](?::[0-9]+)?/)?{_COMPONENT}"
    rf"(?:/{_COMPONENT})*(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?P<digest>@[^@]+)?",
    re.ASCII,
)


def pull_policy(image: str) -> str:
    """Say when to fetch an image: always if it means `latest`, whose content moves."""
    found = _IMAGE.fullmatch(image)
    if found is None:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
