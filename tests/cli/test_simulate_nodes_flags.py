"""Flags of `sully simulate-nodes`: what is refused before any server is asked."""

from __future__ import annotations

import pytest

from sully.cli.main import main

REFUSED = {
    "no node": (["--nodes", "0"], '--nodes: invalid number "0" (a whole number, 1 to 10000)'),
    "a label without a value": (["--label", "rack"], 'invalid label "rack" (for example rack=r7)'),
    "a label without a key": (["--label", "=r7"], 'invalid label "=r7"'),
    "a prefix with a dot": (["--name-prefix", "a.b"], '--name-prefix: invalid prefix "a.b"'),
    "an empty prefix": (["--name-prefix", ""], '--name-prefix: invalid prefix ""'),
    "a negative time": (["--stop-seconds", "-1"], 'invalid number of seconds "-1"'),
    "keep and delete": (["--keep", "--delete"], "--keep and --delete cannot be used together"),
}


@pytest.mark.parametrize(("flags", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(flags: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate-nodes", *flags]) == 2
    assert text in capsys.readouterr().err
