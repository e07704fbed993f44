"""`sully signal` and `sully signal-receiver`: what their flags refuse, and who is let in."""

from pathlib import Path

import pytest

from sully.cli.main import main
from sully.cli.run.signal_receiver import static_check
from sully.testing.server import serve

WRONG = {
    "no key": (("signal", "device", "a"), "required flag --key not set"),
    "another severity": (
        ("signal", "device", "a", "--key", "k", "--severity", "Bad"),
        'unknown value "Bad" (one of: Info, Warning, Critical)',
    ),
    "over, and for an hour": (
        ("signal", "device", "a", "--key", "k", "--clear", "--for", "1h"),
        "--clear and --for cannot be used together",
    ),
    "no address": (("signal-receiver", "--listen", "here"), 'invalid address "here"'),
    "a certificate without a key": (
        ("signal-receiver", "--tls-cert-file", "c"),
        "are required together",
    ),
}


@pytest.mark.parametrize(("arguments", "want"), WRONG.values(), ids=WRONG.keys())
def test_refused(arguments: tuple[str, ...], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(arguments)) == 2
    assert want in capsys.readouterr().err


def test_a_fault_of_many_devices_is_confirmed(capsys: pytest.CaptureFixture[str]) -> None:
    all_devices = ("signal", "device", "*", "--key", "fan")
    with serve(nodes=2, devices_per_node=2) as server:
        where = ("--kubeconfig", str(server.kubeconfig))
        codes = [
            main([*words, *where])
            for words in (all_devices, (*all_devices, "--yes"), (*all_devices, "--clear"))
        ]

    shown = capsys.readouterr()
    assert codes == [2, 0, 0]
    assert "this reports a fault of 4 of 4 devices, and there is no terminal to ask" in shown.err
    assert (shown.out.count("recorded"), shown.out.count("cleared")) == (4, 4)


def test_what_is_still_reported_after_the_end_of_another_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    device = ("signal", "device", "worker-0000/gpu-0")
    with serve(nodes=1, devices_per_node=1) as server:
        where = ("--kubeconfig", str(server.kubeconfig))
        xid = ("--key", "xid", "--value", "31")
        codes = [
            main([*device, *words, *where])
            for words in (xid, ("--key", "xid", "--clear"), (*xid, "--clear"))
        ]

    assert codes == [0, 0, 0]
    assert capsys.readouterr().out.splitlines() == [
        "gpu.sully.dev/worker-0000/gpu-0 xid: recorded",
        "gpu.sully.dev/worker-0000/gpu-0 xid: cleared",
        "note: gpu.sully.dev/worker-0000/gpu-0 still has --key xid --value 31",
        "gpu.sully.dev/worker-0000/gpu-0 xid: cleared",
    ]


def test_a_file_without_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (tmp_path / "absent", tmp_path / "empty"):
        (tmp_path / "empty").write_text("\n\n")
        assert main(["signal-receiver", "--token-file", str(file)]) == 1
        assert "no token found" in capsys.readouterr().err


async def test_tokens_of_a_file_can_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("one\ntwo\n")
    check = static_check(str(file))

    assert [await check(f"Bearer {x}", "/signals") for x in ("one", "two", "", "onetwo")] == [
        200,
        200,
        401,
        401,
    ]
    assert await check("Basic one", "/signals") == 401
    file.write_text("three\n")
    assert [await check(f"Bearer {x}", "/signals") for x in ("one", "three")] == [401, 200]
    file.unlink()
    assert await check("Bearer three", "/signals") == 401
