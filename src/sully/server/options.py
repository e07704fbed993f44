"""The options of writes: dry run, field manager, force, field validation."""

from sully.machinery.errors import invalid
from sully.machinery.fields import FieldError, Path
from sully.server.requests import Request

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def check_write_options(request: Request, kind: str, *, apply: bool = False) -> None:
    """Refuse options that a write does not have."""
    problems = [*_dry_run(request), *_manager(request, apply=apply), *_validation(request)]
    if kind == "PatchOptions":
        problems = [*_force(request, apply=apply), *problems]
    if problems:
        raise invalid(kind, "meta.k8s.io", "", problems)


def _dry_run(request: Request) -> list[FieldError]:
    given = request.options.get("dryRun")
    if given is None or given == "All":
        return []
    return [Path("dryRun").not_supported([given], ("All",))]


def _force(request: Request, *, apply: bool) -> list[FieldError]:
    if request.options.get("force") is not None and not apply:
        return [Path("force").forbidden("may not be specified for non-apply patch")]
    return []


def _manager(request: Request, *, apply: bool) -> list[FieldError]:
    given = request.option("fieldManager")
    at = Path("fieldManager")
    if apply and not given:
        return [at.required("is required for apply patch")]
    if len(given) > 128:
        return [at.too_long(128)]
    if not given.isprintable():
        return [at.invalid(given, "should only contain printable characters")]
    return []


def _validation(request: Request) -> list[FieldError]:
    mode = request.option("fieldValidation")
    if mode in _VALIDATIONS:
        return []
    return [Path("fieldValidation").not_supported(mode, _VALIDATIONS)]
