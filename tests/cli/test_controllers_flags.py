"""Flags of `sully controllers`: what is refused, and with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from sully.cli.main import main
from sully.client.transport import Key
from sully.controller_setup import CONTROLLERS
from sully.remote import chosen_controllers, lease_of

REFUSED = {
    "an unknown controller": (["--only", "eviction,no"], 2, "unknown controller no (one of: a"),
    "an unknown gate": (["--feature-gates", "Nonsense=true"], 2, "Nonsense"),
    "a deadline after the end": (["--renew-deadline", "20s"], 2, "shorter than the lease duration"),
    "the same by its long name": (
        ["--leader-elect-renew-deadline", "20s"], 2, "shorter than the lease duration",
    ),
    "a lease without a namespace": (["--lease", "mine"], 2, "NAMESPACE/NAME"),
    "no port": (["--metrics-listen", "localhost"], 2, 'invalid address "localhost"'),
    "no file of servers": (["--prometheus-servers", "absent"], 2, "cannot read absent"),
    "a file without servers": (["--prometheus-servers", "empty.yaml"], 2, "empty.yaml: "),
    "no file of receivers": (["--notifications", "absent"], 2, "cannot read absent"),
    "a file without receivers": (["--notifications", "empty.yaml"], 2, "empty.yaml: "),
    "receivers without what observes": (
        ["--notifications", "good.yaml", "--only", "expiry"], 2, "needs the controller device",
    ),
    "no URL of a collector": (["--otlp-endpoint", "x"], 2, "invalid URL"),
    "metadata of a cloud": (["--otlp-endpoint", "http://169.254.169.254"], 2, "invalid URL"),
    "a broken URL": (["--otlp-endpoint", "http://[x"], 2, "invalid URL"),
    "no kubeconfig": (["--kubeconfig", "absent"], 1, "absent"),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "code", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    flags: list[str],
    code: int,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.yaml").write_text("receivers:\n- name: a\n")
    (tmp_path / "good.yaml").write_text("receivers:\n- {name: a, url: 'https://example.com'}\n")
    config = tmp_path / "kubeconfig"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    default_flags = [] if "--kubeconfig" in flags else ["--kubeconfig", str(config)]

    assert main(["controllers", *default_flags, *flags]) == code
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "15", "s", "15x", "1h 3m"])
def test_no_times(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["controllers", f"--lease-duration={text}"]) == 2

    err = capsys.readouterr().err
    assert err.startswith(f'error: --leader-elect-lease-duration: invalid duration "{text}" (for')


def test_every_controller_can_be_chosen() -> None:
    assert chosen_controllers(",".join(CONTROLLERS)) == frozenset(CONTROLLERS)
    assert chosen_controllers("") is None


@pytest.mark.parametrize(
    ("text", "chosen", "lease"),
    [
        ("", None, Key("kube-system", "sully-controllers")),
        ("", frozenset({"b", "a"}), Key("kube-system", "sully-controllers-a-b")),
        ("team/mine", frozenset({"a"}), Key("team", "mine")),
    ],
    ids=["all", "some", "named"],
)  # fmt: skip
def test_those_with_other_controllers_have_another_lease(
    text: str, chosen: frozenset[str] | None, lease: Key
) -> None:
    assert lease_of(text, chosen) == lease
