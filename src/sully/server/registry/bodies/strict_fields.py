"""Unknown and repeated fields of a body: warnings, or an error, depending on fieldValidation."""

import re

from sully.machinery.errors import STRICT_DECODING, ApiError, BadRequest, invalid
from sully.machinery.fields import Path
from sully.machinery.serialization.codec import RepeatedKey
from sully.machinery.serialization.decode import MAX_UNKNOWN
from sully.machinery.serialization.gotext import quote
from sully.server.registry.bodies.body import PatchText
from sully.server.requests import Request

_STEPS = re.compile(r"[.\[]")


def field_validation(request: Request) -> str:
    """Return how unknown fields are treated: Ignore, Warn or Strict."""
    return request.option("fieldValidation") or "Warn"


def validate_strict(
    request: Request,
    kind: tuple[str, str],
    repeated: list[str],
    unknown: list[str],
    patch: PatchText | None,
) -> list[str]:
    """Return warnings, or raise, depending on fieldValidation."""
    if not repeated and not unknown and (patch is None or not patch.unknown):
        return []
    known = set(unknown)
    prefix = "json patch " if patch is not None and patch.is_json_patch else ""
    # Keys of JSON have paths, those of YAML texts with their lines.
    lines = [name for name in repeated if not isinstance(name, RepeatedKey)]
    fields: list[tuple[str, str]] = [
        (name, f"{prefix}duplicate field {quote(name)}")
        for name in repeated
        if isinstance(name, RepeatedKey) and not _within(name, known)
    ]
    fields += [(n, f"{prefix}unknown field {quote(n)}") for n in (patch.unknown if patch else ())]
    fields += [
        (name, f"unknown field {quote(name)}") for name in unknown[: MAX_UNKNOWN - len(fields)]
    ]
    if patch is None or patch.is_json_patch:
        fields = _in_document_order(fields)
    problems = [problem for _, problem in fields]
    mode = field_validation(request)
    if mode == "Warn":
        return lines + problems
    if lines:
        # In YAML Kubernetes knows the lines of repeated keys instead of their fields.
        problems.insert(0, "\n  ".join(("yaml: unmarshal errors:", *lines)))
    if lines and mode == "Strict" and patch is not None and patch.applied:
        text = f"error converting YAML to JSON: {problems[0]}"
        raise BadRequest(f"error strict decoding patch: {text}")
    if problems and mode == "Strict":
        error = undecodable(kind, f"{STRICT_DECODING}{', '.join(problems)}", patch)
        error.strict_errors = problems
        raise error
    return []


def _in_document_order(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Sort problems with fields as a reader of the document meets them, if that is known."""
    positions = next((path.positions for path, _ in fields if isinstance(path, RepeatedKey)), None)
    if positions is None:
        return fields

    def position(problem: tuple[str, str]) -> int:
        path = problem[0]
        if isinstance(path, RepeatedKey):
            return path.position
        return positions.get(path, len(positions))

    return sorted(fields, key=position)


def _within(path: str, unknown: set[str]) -> bool:
    """Report whether a field is unknown or inside of an unknown one, which is not checked."""
    return path in unknown or (
        bool(unknown) and any(path[: end.start()] in unknown for end in _STEPS.finditer(path))
    )


def undecodable(kind: tuple[str, str], problem: str, patch: PatchText | None) -> ApiError:
    if patch is not None:
        return invalid("", "", "", [Path("patch").invalid(patch.shown(), problem)])
    name, version = kind
    return BadRequest(
        f"{name} in version {quote(version)} cannot be handled as a {name}: {problem}"
    )
