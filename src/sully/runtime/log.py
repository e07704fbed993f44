"""How the program logs: a constant message and fields, for people or as JSON lines.

`configure` is called once, by `app.py` or the CLI. A module takes `get_logger` at import time,
which costs nothing before its first line; what logs often binds its fields once.
"""

from __future__ import annotations

import logging
import sys
import threading
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

import msgspec

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

Format = Literal["console", "json"]
Level = Literal["debug", "info", "warning", "error"]


def get_logger(name: str, **fields: object) -> FilteringBoundLogger:
    """Return the logger of a package."""
    return cast("FilteringBoundLogger", _Lazy(name, fields))


class Tally:
    """Counts what any client can cause, and logs it once per interval with the number.

    Otherwise clients could fill the disk with logs.
    """

    def __init__(
        self,
        log: FilteringBoundLogger,
        message: str,
        seconds: float = 60.0,
        *,
        level: Level = "warning",
    ) -> None:
        self._log = log
        self._message = message
        self._level = level
        self._seconds = seconds
        self._next = 0.0
        self._count = 0
        self._fields: dict[str, object] = {}

    def add(self, count: int = 1, **fields: object) -> None:
        """Count; the fields of the last one are logged."""
        self._count += count
        self._fields = fields

    def report(self, now: float) -> None:
        """Log what was counted, unless it was logged a short time ago."""
        if self._count and now >= self._next:
            self._next = now + self._seconds
            getattr(self._log, self._level)(self._message, count=self._count, **self._fields)
            self._count = 0


class _Lazy:
    """A logger that imports structlog with its first line, because the import takes long."""

    __slots__ = ("_bound", "_fields", "_setup")

    def __init__(self, name: str, fields: dict[str, object]) -> None:
        self._fields = {"logger": name, **fields}
        self._bound: FilteringBoundLogger | None = None
        self._setup: object = None

    def __getattr__(self, name: str) -> Any:
        structlog = _structlog()
        setup = structlog.get_config()["processors"]
        if self._bound is None or self._setup is not setup:
            # A bound logger would keep an earlier configuration indefinitely.
            self._bound = structlog.get_logger().bind(**self._fields)
            self._setup = setup
        return getattr(self._bound, name)


def configure(
    form: Format = "console", *, level: Level = "info", stream: TextIO | None = None
) -> None:
    """Set up logging for the process, also for libraries that use the standard library's."""
    global _pending
    out = stream or cast("TextIO", _StandardError())
    number = logging.getLevelNamesMapping()[level.upper()]
    _pending = _Setup(form, number, out)
    if "structlog" in sys.modules:
        _structlog()
    logging.basicConfig(handlers=[_Forward()], level=max(number, logging.WARNING), force=True)
    logging.captureWarnings(form == "json")
    if form == "json":
        _log_crashes()
    else:
        _restore_hooks()


def load() -> None:
    """Import what the first line needs, which fails once file descriptors have run out."""
    _structlog()


class _Setup(msgspec.Struct, frozen=True):
    """How to log; applied with the first line, because most servers start without writing one."""

    form: Format
    level: int
    out: Any

    def apply(self, structlog: Any) -> None:
        structlog.configure(
            processors=_processors(structlog, self.form, colors=self.out.isatty()),
            wrapper_class=structlog.make_filtering_bound_logger(self.level),
            logger_factory=structlog.WriteLoggerFactory(file=self.out),
            cache_logger_on_first_use=True,
        )


_pending: _Setup | None = None


def _structlog() -> Any:
    """Import structlog, and set it up with the settings of `configure`."""
    global _pending
    structlog = _import_structlog()
    setup, _pending = _pending, None
    if setup is not None:
        setup.apply(structlog)
    return structlog


def _import_structlog() -> Any:
    """Import structlog without packages that it imports if they are installed, for nothing here.

    `rich` formats tracebacks: half of the import, 50 ms of processor time and almost 4 MiB.
    `greenlet` takes 2 MiB. Not for a process in which another thread may import them meanwhile.
    """
    if "structlog" in sys.modules:
        return import_module("structlog")
    refused = [name for name in ("rich", "greenlet") if name not in sys.modules]
    for name in refused:
        sys.modules[name] = None  # type: ignore[assignment]  # how an import is refused
    try:
        return import_module("structlog")
    finally:
        for name in refused:
            del sys.modules[name]


def is_json() -> bool:
    """Report whether logs are JSON lines; then nothing else is written beside them."""
    if _pending is not None:
        return _pending.form == "json"
    structlog = sys.modules.get("structlog")
    return structlog is not None and _render_json in structlog.get_config()["processors"]


def _log_crashes() -> None:
    """Log what the interpreter would print as a traceback of several lines."""
    sys.excepthook = _log_crash
    threading.excepthook = lambda args: (
        None
        if args.exc_value is None
        else _log_crash(args.exc_type, args.exc_value, args.exc_traceback)
    )
    sys.unraisablehook = lambda args: (
        None
        if args.exc_value is None
        else _log_crash(args.exc_type, args.exc_value, args.exc_traceback)
    )


def _restore_hooks() -> None:
    sys.excepthook = sys.__excepthook__
    threading.excepthook = threading.__excepthook__
    sys.unraisablehook = sys.__unraisablehook__


def _log_crash(
    type_: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    get_logger("sully").error("uncaught exception", exc_info=(type_, error, traceback))


class _StandardError:
    """Whatever is the standard error when a line is written; it may be another one by then."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


def _processors(structlog: Any, form: Format, *, colors: bool) -> list[Processor]:
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    if form == "json":
        return [*shared, structlog.processors.format_exc_info, _render_json]
    # By default a traceback shows the values of variables where `rich` is installed: that takes a
    # second of processor time, and writes tokens and keys into the log.
    plain = structlog.dev.plain_traceback
    return [
        *shared,
        _escape,
        structlog.dev.ConsoleRenderer(
            colors=colors, timestamp_key="time", exception_formatter=plain
        ),
    ]


def _escape(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Write out what a terminal would obey: paths and names in fields are chosen by clients."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = "".join(map(_escaped, value))
    return event


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def _render_json(_logger: WrappedLogger, _name: str, event: EventDict) -> str:
    # Anything may be a field; what has no JSON form is shown as text rather than lost.
    return msgspec.json.encode(event, enc_hook=str).decode()


class _Forward(logging.Handler):
    """Sends what libraries log through the same processors."""

    def emit(self, record: logging.LogRecord) -> None:
        get_logger(record.name).log(
            record.levelno, record.getMessage(), exc_info=record.exc_info or None
        )
