"""The options of writes: dry run, field manager, force, field validation."""

from sully.machinery.errors import invalid
from sully.machinery.fields import FieldError, Path
from sully.server.requests import Request

_MANAGER = Path("fieldManager")
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def check_write_options(request: Request, kind: str, *, apply: bool = False) -> None:
    """Reject options that a write does not have."""
    if not request.options and not apply:
        return
    problems = [*_manager(request, apply=apply), *_dry_run(request), *_validation(request)]
    if kind == "PatchOptions":
        problems = [*_force(request, apply=apply), *problems]
    if problems:
        raise invalid(kind, "meta.k8s.io", "", problems)


def _dry_run(request: Request) -> list[FieldError]:
    dry_run = request.options.get("dryRun")
    if dry_run is None or dry_run == "All":
        return []
    return [Path("dryRun").not_supported([dry_run], ("All",))]


def _force(request: Request, *, apply: bool) -> list[FieldError]:
    if request.options.get("force") is not None and not apply:
        return [Path("force").forbidden("may not be specified for non-apply patch")]
    return []


def _manager(request: Request, *, apply: bool) -> list[FieldError]:
    manager = request.option("fieldManager")
    if apply and not manager:
        return [_MANAGER.required("is required for apply patch")]
    problems = [_MANAGER.too_long(128)] if len(manager.encode()) > 128 else []
    if manager.isprintable():
        return problems
    position = 0
    for character in manager:
        if not character.isprintable():
            text = f"invalid character U+{ord(character):04X} (at position {position})"
            problems.append(_MANAGER.invalid(manager, text))
        position += len(character.encode(errors="replace"))
    return problems


def _validation(request: Request) -> list[FieldError]:
    mode = request.option("fieldValidation")
    if mode in _VALIDATIONS:
        return []
    return [Path("fieldValidation").not_supported(mode, _VALIDATIONS)]
