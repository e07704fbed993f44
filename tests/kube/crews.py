"""Controllers beside a server, as the account that `sully install` created, and their restarts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.beside import APPLY, LEASE, as_account
from kube.process import Foreign
from sully.testing.remote import controllers


class Crew:
    """Some controllers, which a test can stop and start again."""

    def __init__(self, server: Foreign, folder: Path, only: str) -> None:
        self.server = server
        self._only = only
        done = server.sully(*APPLY)
        assert done.returncode == 0, done.stderr
        self._config = as_account(server.admin(), server.kubeconfig, folder / "config")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the controllers until the block ends, with all permissions that they need."""
        with controllers(self._config, "--only", self._only, "--lease", LEASE) as process:
            process.wait_for("leading since")
            yield
            assert process.stop() == 0
        assert "forbidden" not in "".join(process.output).lower()
