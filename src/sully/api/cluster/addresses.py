"""Whether the address of a cluster's API server is one, and https: as Go's `net/url` reads it.

Agents and OCM's admission are written in Go; what one of them cannot parse must not be
stored. Python's own parser mends silently what it does not like, so it cannot decide here.
"""

import re

_ESCAPES = r"(?:[^%]|%[0-9A-Fa-f]{2})*"
# In a host only bytes beyond ASCII, and the per cent sign itself, may be escaped.
_HOST_CHARACTER = r"(?:[-A-Za-z0-9_.~!$&'()*+,;=:<>\"]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])"
_USER = r"(?:(?:[-A-Za-z0-9._:~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})*@)?"
_PORT = r"(?::[0-9]*)?"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPED = re.compile(_ESCAPES, re.DOTALL)
_AUTHORITY = re.compile(
    rf"{_USER}(?:\[(?:{_HOST_CHARACTER})*\]|(?:(?!:[^:]*$){_HOST_CHARACTER})*){_PORT}"
)


def is_https(url: str) -> bool:
    """Report whether a URL can be parsed and has the scheme `https`."""
    address, _, fragment = url.partition("#")
    scheme, colon, rest = address.partition(":")
    if _CONTROL.search(address) or not colon or scheme.lower() != "https":
        return False
    path = rest.partition("?")[0]
    if path.startswith("//"):
        authority, slash, path = path[2:].partition("/")
        if not _AUTHORITY.fullmatch(authority):
            return False
        path = slash + path
    elif not path.startswith("/"):
        # Without a slash the rest is taken as it is.
        path = ""
    return all(map(_ESCAPED.fullmatch, (path, fragment)))
