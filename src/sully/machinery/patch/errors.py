"""What can be wrong with a patch, and how the API answers.

PatchError
├── MalformedPatchError      400  the patch cannot be read
├── TooManyOperationsError   413  more operations than the server runs
├── TooManyValuesError       413  the patch makes more of an object than the server keeps
├── FailedPatchError         422  the patch can be read but does not fit the object
└── UnmergeablePatchError    500  a strategic merge patch contradicts itself or the object

Field errors after a patch are not here: the patched object is validated like any other.
"""

from typing import Any

from sully.machinery.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge
from sully.machinery.serialization.codec import to_json_if_possible

# Deeper documents are refused: nothing in the API nests like that, only attacks do.
MAX_DEPTH = 200


class PatchError(Exception):
    """A patch that was not applied."""

    def answer(self) -> ApiError:
        """Return the answer for the client."""
        return ApiError(str(self))


class MalformedPatchError(PatchError):
    """The patch has the wrong structure; the text is sent to the client."""

    def answer(self) -> ApiError:
        """Return a 400 with the text."""
        return BadRequest(str(self))


class TooManyOperationsError(PatchError):
    """The list of operations is longer than the server runs."""

    def answer(self) -> ApiError:
        """Return a 413 with the text."""
        return RequestEntityTooLarge(f"Request entity too large: {self}")


class TooManyValuesError(PatchError):
    """The object would have more fields and list items than the server reads."""

    def answer(self) -> ApiError:
        """Return a 413 with the text."""
        return RequestEntityTooLarge(f"Request entity too large: {self}")


class FailedPatchError(PatchError):
    """An operation did not fit the object.

    Kubernetes hides the reason from the client, and clients match on its text.
    """

    def answer(self) -> ApiError:
        """Return a 422 without a reason."""
        return Invalid("the server rejected our request due to an error in our request", details={})


class UnmergeablePatchError(PatchError):
    """A strategic merge patch that cannot be merged; the text is sent to the client."""


def check_depth(document: Any) -> None:
    """Refuse a document that nests deeper than the server follows."""
    text = to_json_if_possible(document)
    if text is not None and text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        # So few brackets cannot nest too deeply.
        return
    level = [document]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise too_deep()


def too_deep() -> MalformedPatchError:
    """Return the error for a document that nests too deeply."""
    return MalformedPatchError(f"the patch nests deeper than {MAX_DEPTH} levels")
