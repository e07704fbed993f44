"""Recognizes the specs of pods that were created alike.

Thousands of pods of one owner have the same spec, except for the name of their token's volume,
which is random. What was found out about one of them holds for all, unless it is about that name.
"""

import re
from typing import Any

from sully.machinery.serialization.codec import to_json

Obj = dict[str, Any]

_TOKEN_NAME = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')


def without_token_name(spec: Obj) -> bytes:
    """Return an encoded spec without the random name that each pod has: of its token's volume."""
    encoded = to_json(spec)
    names = set(_TOKEN_NAME.findall(encoded))
    # No JSON contains a NUL.
    return encoded.replace(names.pop(), b"\0") if len(names) == 1 else encoded
