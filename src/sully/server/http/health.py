"""The health pages: `/healthz`, `/livez` and `/readyz` with named checks, and `/metrics/slis`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import parse_qs

from sully.runtime.metrics import CONTENT_TYPE
from sully.server.http.http_request import HttpRequest

TEXT: Final = "text/plain; charset=utf-8"
NOT_FOUND: Final = b"404 page not found\n"
PAGES: Final = ("healthz", "livez", "readyz")
_GAUGE: Final = "kubernetes_healthcheck"
_COUNTER: Final = "kubernetes_healthchecks_total"

_OF_KUBERNETES: Final = {"etcd": "store", "log": "ping"}
# Checks that Kubernetes has, and ours that covers the same.
_NAMES: Final = {
    "healthz": _OF_KUBERNETES,
    "livez": _OF_KUBERNETES,
    "readyz": {
        **_OF_KUBERNETES,
        "etcd-readiness": "store",
        "informer-sync": "store",
        "shutdown": "ping",
    },
}

Check = Callable[[], str]  # empty: fine; else what is wrong


class HealthPages:
    """Runs the checks and counts their results."""

    def __init__(self) -> None:
        self.checks: dict[str, Check] = {"ping": lambda: ""}
        self._results: Counter[tuple[str, str, str]] = Counter()
        """By check, status and page."""

    async def serve(self, http_request: HttpRequest) -> None:
        """Serve a page, or one check of it."""
        page, _, name = http_request.path.strip("/").partition("/")
        name = _NAMES.get(page, {}).get(name, name)
        if not name:
            await self._serve_all(http_request, page)
        elif name not in self.checks:
            await http_request.respond(404, NOT_FOUND, TEXT)
        elif problem := self.checks[name]():
            text = f"internal server error: {problem}\n"
            await http_request.respond(500, text.encode(), TEXT)
        else:
            await http_request.respond(200, b"ok", TEXT)

    async def _serve_all(self, http_request: HttpRequest, page: str) -> None:
        query = parse_qs(http_request.scope["query_string"].decode("latin-1"))
        excluded = set(query.get("exclude", ()))
        lines, failed = [], False
        for name, check in self.checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
                continue
            problem = check()
            failed = failed or bool(problem)
            self._results[name, "error" if problem else "success", page] += 1
            lines.append(f"[-]{name} failed: {problem}\n" if problem else f"[+]{name} ok\n")
        if not failed and "verbose" not in http_request.query:
            await http_request.respond(200, b"ok", TEXT)
            return
        if unknown := sorted(excluded - self.checks.keys()):
            names = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        lines.append(f"{page} check {'failed' if failed else 'passed'}\n")
        await http_request.respond(500 if failed else 200, "".join(lines).encode(), TEXT)

    async def slis(self, http_request: HttpRequest) -> None:
        """Serve the results as metrics: those of now, and how often each page had which."""
        await http_request.respond(200, "".join(self._metrics()).encode(), CONTENT_TYPE)

    def _metrics(self) -> Iterator[str]:
        yield f"# HELP {_GAUGE} [STABLE] Result of a health check: 1 if it passes.\n"
        yield f"# TYPE {_GAUGE} gauge\n"
        for name, check in sorted(self.checks.items()):
            value = 0 if check() else 1
            for page in PAGES:
                yield f'{_GAUGE}{{name="{name}",type="{page}"}} {value}\n'
        yield f"# HELP {_COUNTER} [STABLE] Results of health checks.\n"
        yield f"# TYPE {_COUNTER} counter\n"
        for (name, status, page), times in sorted(self._results.items()):
            yield f'{_COUNTER}{{name="{name}",status="{status}",type="{page}"}} {times}\n'
