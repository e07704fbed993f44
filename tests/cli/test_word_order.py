"""Flags may stand before, between and behind words, as people type them."""

import pytest

from sully.cli.main import COMMANDS, build_parser, main
from sully.cli.parsing import command_first, help_first

EXPLAIN = (
    "explain -n lab pod worker",
    "explain pod -n lab worker",
    "explain pod worker -n lab",
    "explain pod worker --namespace=lab",
)
PLAN = (
    "plan --rate 5 device a/b/c key:NoExecute",
    "plan device --rate 5 a/b/c key:NoExecute",
    "plan device a/b/c key:NoExecute --rate 5",
)


@pytest.mark.parametrize("line", EXPLAIN)
def test_explain(line: str) -> None:
    found = build_parser("explain").parse_args(line.split())

    assert (found.kind, found.name, found.namespace) == ("pod", "worker", "lab")


@pytest.mark.parametrize("line", PLAN)
def test_plan(line: str) -> None:
    found = build_parser("plan").parse_args(line.split())

    assert (found.words, found.rate) == (["device", "a/b/c", "key:NoExecute"], 5)


def test_the_end_of_a_removed_taint_is_no_flag() -> None:
    found = build_parser("taint").parse_args(
        ["taint", "device", "a/b/c", "--yes", "key:NoExecute-"]
    )

    assert found.words == ["device", "a/b/c", "key:NoExecute-"]


SLIPS = {
    "a flag that nobody knows": (["plan", "device", "--what", "a/b/c"], "no flag --what\n"),
    "a flag that looks alike": (["devices", "--tained"], "--tained; did you mean --tainted?\n"),
    "an unknown command": (["devics"], "no command 'devics'; did you mean devices?\n"),
    "nothing like a command": (["frobnicate"], "no command 'frobnicate'\n"),
    "a word too many": (["capabilities", "b"], "a word too many: b\n"),
    "a value that is none": (["history", "--since=--"], "--since: expected one argument\n"),
    "a form that is none": (["devices", "-o", "jsn"], "; did you mean json?\n"),
    "an unknown action": (["evictions", "paus"], "pause, resume; did you mean pause?\n"),
    "what kubectl takes out": (["devices", "-o", "jsonpath={.x}"], "; programs read '-o json'\n"),
    "what kubectl chooses by": (["devices", "-l", "a=b"], "no flag -l; 'jq' can choose from"),
    "what kubectl puts together": (["plan", "-k", "d"], "-k; 'kubectl kustomize DIR | sully plan"),
    "what kubectl applies": (["taint", "-f", "x.yaml"], "no flag -f; 'kubectl apply' takes files"),
}


@pytest.mark.parametrize(("words", "want"), SLIPS.values(), ids=SLIPS)
def test_slips(words: list[str], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert want in said
    assert said.count("\n") == 2
    assert said.endswith("--help' tells what there is\n")


EVERYWHERE = {
    "short": "devices -A",
    "long": "history --all-namespaces",
    "behind a namespace": "evictions -n team -A",
    "not said": "devices",
}


@pytest.mark.parametrize("line", EVERYWHERE.values(), ids=EVERYWHERE)
def test_all_namespaces(line: str) -> None:
    words = line.split()

    assert build_parser(words[0]).parse_args(words).namespace == ""


FIRST = {
    "nothing before it": ("devices -n a", "devices -n a"),
    "a flag with a value": ("--kubeconfig x devices", "devices --kubeconfig x"),
    "several": ("-n a --context=c devices y", "devices -n a --context=c y"),
    "a flag of the program": ("--version", "--version"),
    "no command": ("-n devices", "-n devices"),
    "a value that is called as a command": ("-n plan devices", "devices -n plan"),
}


@pytest.mark.parametrize(("given", "want"), FIRST.values(), ids=FIRST)
def test_flags_before_the_command(given: str, want: str) -> None:
    assert command_first(given.split(), COMMANDS) == want.split()


HELP = {
    "about everything": ("help", "--help"),
    "about one command": ("help devices", "devices --help"),
    "about a command and its subject": ("help explain pod", "explain --help"),
    "a name that is called so": ("devices help", "devices help"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("given", "want"), HELP.values(), ids=HELP)
def test_help_as_a_word(given: str, want: str) -> None:
    assert help_first(given.split()) == want.split()
