"""How command lines are parsed: flags before, between and after arguments, and usage errors."""

import pytest

from cli.commandlines import parsed
from sully.cli.main import main, with_help_flag

EXPLAIN = (
    "explain -n lab pod worker",
    "explain pod -n lab worker",
    "explain pod worker -n lab",
    "explain pod worker --namespace=lab",
    "-n lab explain pod worker",
)
PLAN = (
    "plan --rate 5 device a/b/c key:NoExecute",
    "plan device --rate 5 a/b/c key:NoExecute",
    "plan device a/b/c key:NoExecute --rate 5",
)


@pytest.mark.parametrize("line", EXPLAIN)
def test_explain(line: str) -> None:
    result = parsed(*line.split())

    assert (result.kind, result.names, result.namespace) == ("pod", ("worker",), "lab")


@pytest.mark.parametrize("line", PLAN)
def test_plan(line: str) -> None:
    result = parsed(*line.split())

    assert (result.arguments, str(result.rate)) == (("device", "a/b/c", "key:NoExecute"), "5/s")


def test_the_end_of_a_removed_taint_is_not_a_flag() -> None:
    result = parsed("taint", "device", "a/b/c", "--yes", "key:NoExecute-")

    assert result.arguments == ("device", "a/b/c", "key:NoExecute-")


DRY_RUNS = {
    "without the flag": ("taint device x", "none"),
    "without a value": ("taint --dry-run device x", "server"),
    "with a value": ("taint --dry-run=client device x", "client"),
}


@pytest.mark.parametrize(("line", "want"), DRY_RUNS.values(), ids=DRY_RUNS)
def test_a_flag_whose_value_is_optional(line: str, want: str) -> None:
    result = parsed(*line.split())

    assert (result.dry_run, result.arguments) == (want, ("device", "x"))


SELECTING = {
    "cordon class a": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "drain class a": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "uncordon class a": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "taint device * k:NoExecute": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "untaint device * k": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "plan device * k:NoExecute": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "signal device *": ("--class", "--cel", "--selector", "--uuid", "--pci"),
    "maintenance create m --driver d": (
        *("--driver", "--pool", "--device", "--class", "--cel", "--uuid", "--selector"),
    ),
    "evictions resume *": ("--selector",),
    "devices": ("--node", "--class", "--cel", "--selector", "--uuid", "--pci", "--namespace"),
    "evictions": ("--selector", "--namespace"),
    "history": ("--namespace",),
    "status": ("--snapshot",),
    "plan": ("--filename", "--snapshot"),
}
"""Flags that narrow what a command changes or lists, where empty would be more, and files."""


@pytest.mark.parametrize("value", ["", " "], ids=["empty", "blank"])
@pytest.mark.parametrize(
    ("line", "flag"), [(line, flag) for line, flags in SELECTING.items() for flag in flags]
)
def test_a_flag_that_selects_has_a_value(
    line: str, flag: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in `-l "$ZONE"` where the variable is not set."""
    code = main([*line.split(), flag, value])

    assert code == 2
    assert capsys.readouterr().err.startswith(f"error: {flag}: the value is empty\n")


ERRORS = {
    "an unknown flag": (["plan", "device", "--what", "a/b/c"], "unknown flag: --what\n"),
    "a flag with a typo": (
        ["devices", "--tained"],
        'unknown flag: --tained (did you mean "--tainted"?)\n',
    ),
    "an unknown command": (["devics"], 'unknown command "devics" (did you mean "devices"?)\n'),
    "nothing like a command": (["frobnicate"], 'unknown command "frobnicate"\n'),
    "a list, as of kubectl": (["get", "devices"], "command \"get\"; use 'sully devices'\n"),
    "one, as of kubectl": (["get", "policy", "-A"], "command \"get\"; use 'sully policies'\n"),
    "a list of others": (["get", "pods"], "command \"get\"; use 'kubectl get'\n"),
    "no list": (["get"], "command \"get\"; use 'kubectl get'\n"),
    "a description": (["describe", "pod", "a"], "; use 'sully explain KIND NAME'\n"),
    "a flag of kubectl drain": (
        ["drain", "node", "a", "--grace-period=0"],
        "unknown flag: --grace-period; pods are evicted with their own grace period\n",
    ),
    "a flag that narrows in kubectl, and would not here": (
        ["drain", "node", "a", "--pod-selector=app=web"],
        "unknown flag: --pod-selector; all pods that use the devices are evicted;"
        " select other devices\n",
    ),
    "labels of pods to explain": (
        ["explain", "pod", "-l", "app=web"],
        "unknown flag: -l; use names: sully explain $(kubectl get pods -l LABELS -o name)\n",
    ),
    "another server": (["status", "-s", "x"], "unknown flag: -s; set it in the kubeconfig\n"),
    "an argument too many": (["capabilities", "b"], "unexpected argument: b\n"),
    "one word to untaint": (
        ["untaint", "device", "node-7/gpu-3"],
        "specify what to untaint and a taint: device NAME... KEY\n",
    ),
    "an argument too few": (["explain"], "missing argument: KIND\n"),
    "no value": (["history", "--since"], "flag needs an argument: --since\n"),
    "a value too many": (["devices", "--tainted=yes"], "flag takes no value: --tainted\n"),
    "a required flag": (["kubeconfig"], "required flag --user not set\n"),
    "no duration": (
        ["history", "--since=--"],
        '--since: invalid duration "--" (for example 15s, 1m30s)\n',
    ),
    "an unknown format": (
        ["devices", "-o", "jsn"],
        'unknown value "jsn" (one of: table, wide, json, yaml, name) (did you mean "json"?)\n',
    ),
    "an unknown action": (["evictions", "paus"], 'pause, resume) (did you mean "pause"?)\n'),
    "parts of objects": (["devices", "-o", "go-template={{.x}}"], "; use -o json\n"),
    "a template that is none": (
        ["devices", "-o", "jsonpath={..name}"],
        "--output: jsonpath: path \"..name\": unsupported at '..name'\n",
    ),
    "a label selector": (["history", "-l", "a=b"], "unknown flag: -l; use -o json with jq\n"),
    "kustomize": (["plan", "-k", "d"], "flag: -k; use 'kubectl kustomize DIR | sully plan -f -'\n"),
    "files": (["taint", "-f", "x.yaml"], "unknown flag: -f; use 'kubectl apply -f' to apply"),
    "a flag before another command": (["-n", "a", "version"], "unknown flag: --namespace\n"),
}


@pytest.mark.parametrize(("arguments", "want"), ERRORS.values(), ids=ERRORS)
def test_usage_errors(arguments: list[str], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2

    err = capsys.readouterr().err
    assert want in err
    assert err.startswith("error: ")
    assert err.count("\n") == 2
    assert err.endswith("--help' for usage.\n")


EVERYWHERE = {
    "short": "devices -A",
    "long": "history --all-namespaces",
    "after a namespace": "evictions -n team -A",
}


@pytest.mark.parametrize("line", EVERYWHERE.values(), ids=EVERYWHERE)
def test_all_namespaces(line: str) -> None:
    assert parsed(*line.split()).all_namespaces


EARLY = {
    "none": ("devices -n a", "devices -n a"),
    "a flag with a value": ("--kubeconfig x devices", "devices --kubeconfig x"),
    "several": ("-n a --context=c devices y", "devices -n a --context=c y"),
    "a repeated one": ("--as-group a --as-group b devices", "devices --as-group a --as-group b"),
    "the same after the command": ("-n a devices -n b", "devices -n b"),
    "a value that is called as a command": ("-n plan devices", "devices -n plan"),
    "a format": ("-o json devices", "devices -o json"),
}


@pytest.mark.parametrize(("typed", "want"), EARLY.values(), ids=EARLY)
def test_flags_before_the_command(typed: str, want: str) -> None:
    assert parsed(*typed.split()) == parsed(*want.split())


def test_no_command_after_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-n", "devices"]) == 2
    assert capsys.readouterr().err.startswith("error: missing command")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("sully ")


HELP = {
    "about everything": ("help", "--help"),
    "about one command": ("help devices", "devices --help"),
    "about a command and its subject": ("help explain pod", "explain --help"),
    "a name that is called so": ("devices help", "devices help"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("typed", "want"), HELP.values(), ids=HELP)
def test_help_as_a_word(typed: str, want: str) -> None:
    assert with_help_flag(typed.split()) == want.split()


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Use 'sully COMMAND --help'" in capsys.readouterr().out
