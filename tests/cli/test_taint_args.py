"""The arguments and flags of `taint`, `untaint` and `plan`, and which are refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cli.terminals import environment, piped
from sully.cli.change.taint.args import TaintArgs, parse_taint_args
from sully.cli.command import CommandError
from sully.cli.main import main
from sully.domain.devices.taints import EFFECTS
from sully.domain.planning.rules.taint_grammar import TaintToAdd, TaintToRemove

PLANS = Path(__file__).parent / "plans"
HOT = TaintToAdd("hot", "", "NoExecute")
READ = {
    "device a/b/c hot:NoExecute": TaintArgs("device", ("a/b/c",), (HOT,)),
    "devices hot:NoExecute a b": TaintArgs("device", ("a", "b"), (HOT,)),
    "device a hot:NoExecute cold-": TaintArgs("device", ("a",), (HOT,), (TaintToRemove("cold"),)),
    "managedcluster eu x=1:NoSelect": TaintArgs(
        "cluster", ("eu",), (TaintToAdd("x", "1", "NoSelect"),)
    ),
}


@pytest.mark.parametrize(("line", "want"), READ.items(), ids=READ)
def test_words(line: str, want: TaintArgs) -> None:
    assert parse_taint_args(line.split()) == want


UNTAINTED = {
    "device a hot": TaintArgs("device", ("a",), (), (TaintToRemove("hot"),)),
    "device a hot- cold-": TaintArgs(
        "device", ("a",), (), (TaintToRemove("hot"), TaintToRemove("cold"))
    ),
    "device a hot:NoExecute": TaintArgs("device", ("a",), (), (TaintToRemove("hot", "NoExecute"),)),
    "cluster eu m": TaintArgs("cluster", ("eu",), (), (TaintToRemove("m"),)),
}


@pytest.mark.parametrize(("line", "want"), UNTAINTED.items(), ids=UNTAINTED)
def test_words_of_untaint(line: str, want: TaintArgs) -> None:
    assert parse_taint_args(line.split(), remove=True) == want


WRONG = {
    "nothing": ("", "missing argument: one of device, node, class, cluster"),
    "something else": ("pod a x:NoExecute", "\n  to find its devices:  sully explain pod"),
    "no kind": ("worker-1 x=y:NoExecute", "\n  for example: node worker-1"),
    "no kind, of a device": ("worker-1/gpu-0 x:NoExecute", "for example: device worker-1/gpu-0"),
    "only a taint": ("x:NoExecute", 'unknown value "x:NoExecute"'),
    "another command": ("drain node n", "\n  to preview it:  sully drain ... --dry-run"),
    "a slip": ("devcie a x:NoExecute", 'did you mean "device"'),
    "no taint": ("device a", "no taint specified"),
    "a key alone": (
        "device a foo",
        r'no taint specified: "foo" has no effect \(KEY\[=VALUE\]:EFFECT\)\n'
        "  Effects of device taints:\n    None              Informational.",
    ),
    "an invalid key": (
        "device a -x:None",
        'invalid taint "-x:None": key "-x": name part must consist of alphanumeric',
    ),
    "an invalid value": (
        "device a x=-:None",
        'invalid taint "x=-:None": value "-": a valid label must be an empty string or consist',
    ),
    "no effect": (
        "device a key=value",
        r"no effect \(KEY\[=VALUE\]:EFFECT, or KEY- to remove\)\n"
        "  Effects of device taints:\n    None              Informational.",
    ),
    "no effect, of a cluster": ("cluster a key=value", "  NoSelect          Placements that do"),
    "an unknown effect": ("device a key:Never", "  NoExecute         As NoSchedule, and running"),
    "twice": ("device a x=1:None x=2:None", "duplicate taint x:None"),
    "set and removed": ("device a x:None x-", "cannot both set and remove the taint x:None"),
}


@pytest.mark.parametrize(("line", "text"), WRONG.values(), ids=WRONG)
def test_wrong_arguments(line: str, text: str) -> None:
    with pytest.raises(CommandError, match=text) as refused:
        parse_taint_args(line.split())

    assert refused.value.code == 2


REFUSED = {
    "labels of no node": ("device '*' x:None -l a=b", "-l a=b: no node has these labels"),
    "a device that is not there": (
        "device gpu.example.com/node-1/gpu-00 x:None",
        'device "gpu-00" not found in pool "node-1" (did you mean "gpu-0"?)',
    ),
    "a node that is not there": ("node node-0 x:None", 'no devices found on node "node-0"'),
    "a class without a name": ("class x:None", "no class specified"),
    "CEL without quotes": ("device --cel device.driver == 'x' x:None", 'invalid taint "=="'),
    "a reason without quotes": (
        "device node-1 x:None --reason fan broken",
        "--reason 'fan ...'",
    ),
    "a file of this folder": ("device cluster.yaml node-1 x:None", "quote patterns: '*'"),
    "a rate for clusters": (
        "cluster eu-1 x:NoSelect --rate 3",
        "--rate: cannot be used with clusters",
    ),
    "a class of clusters": (
        "cluster eu-1 x:NoSelect --class c",
        "--class: cannot be used with clusters",
    ),
    "a reason to remove": (
        "device '*' x- --reason y",
        "--reason: cannot be used when no taint is set",
    ),
    "an end now": (
        "device '*' x:None --for 0s",
        '--for: invalid duration "0s" (1s or more)',
    ),
    "no rate": ("device '*' x:None --rate fast", '--rate: invalid rate "fast" (for example 2, '),
    "no burst": ("device '*' x:NoExecute --burst 0", '--burst: invalid number "0"'),
    "a burst without a rate": (
        "device '*' x:NoExecute --rate 0 --burst 3",
        "--burst requires a --rate other than 0",
    ),
    "removal from nowhere": ("device x-", "no devices specified"),
    "a class that is not there": (
        "device --class gpus x:None",
        'deviceclass "gpus" not found (did you mean "gpu"?)',
    ),
    "clusters by no label": ("cluster x:NoSelect", "no clusters specified"),
    "labels that nobody has": (
        "cluster -l a=b x:NoSelect",
        'managedcluster "*" with labels a=b not found',
    ),
    "labels that make no sense": ("cluster -l 'a in' x:NoSelect", "-l a in: "),
    "a cluster that looks alike": ("cluster eu-11 x:NoSelect", 'did you mean "eu-1"?'),
    "a glob with a slip": ("device gpu.example.con/n* x:None", 'did you mean "gpu.example.com"?'),
    "a rule of another class": (
        "device --class gpu x-",
        "no rule sets the taint x on devices of class gpu",
    ),
    "deletion of words": ("device '*' x:None --delete", "--delete requires -f"),
}


@pytest.mark.parametrize(("line", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(
    line: str,
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(PLANS)
    code = main(["plan", *shlex.split(line), "--snapshot", "cluster.yaml"])

    assert code in (1, 2)
    assert text in capsys.readouterr().err


def test_a_device_that_is_not_there_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PLANS)
    words = ["plan", "device", "gpu.example.com/node-1/gpu-00", "x.y/z:NoExecute"]

    code = main([*words, "--allow-missing", "--snapshot", "cluster.yaml"])

    shown = capsys.readouterr()
    assert code == 0
    assert "No devices affected." in shown.out
    assert shown.err == (
        "warning: the rule currently matches no device:"
        ' device "gpu-00" not found in pool "node-1" (did you mean "gpu-0"?)\n'
    )


def test_a_set_and_a_removal_are_one_plan(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PLANS)
    words = ["plan", "cluster", "eu-*", "a:NoSelect", "b:NoSelectIfNew", "--snapshot"]

    code = main([*words, "cluster.yaml"])

    assert code in (0, 3)
    assert "ManagedCluster/eu-1 would be changed\n" in capsys.readouterr().out


FILES = {
    "a name that is none": ("kind: DeviceTaintRule\nmetadata: x\n", "metadata.name is required"),
    "no version": (
        "kind: DeviceTaintRule\nmetadata: {name: x}\n",
        "apiVersion is required, for example",
    ),
    "a list of numbers": ("{kind: List, items: [3]}", "a document is not an object"),
    "a number": ("3", "a document is not an object"),
    "no YAML": ("a: [", "invalid YAML"),
    "nothing": ("", "no objects found in"),
    "another group": ("{kind: Placement, apiVersion: a/v1, metadata: {name: x}}", "'a/v1'"),
}


@pytest.mark.parametrize(("text", "want"), FILES.values(), ids=FILES)
def test_files_that_are_wrong(
    text: str, want: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)

    code = main(["plan", "-f", str(file), "--snapshot", str(PLANS / "cluster.yaml")])

    assert code == 2
    assert want in capsys.readouterr().err


def test_a_folder_is_the_files_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.yml").write_text((PLANS / "rule.yaml").read_text().replace("firmware\n", "b\n"))
    (tmp_path / "notes.txt").write_text("nothing to read")
    words = ["plan", "-f", str(tmp_path), "--snapshot", str(PLANS / "cluster.yaml")]

    assert main(words) in (0, 3)
    assert "2 of 6 devices affected" in capsys.readouterr().out
    (tmp_path / "b.yml").unlink()
    assert main(words) == 2
    assert "no .yaml, .yml or .json files found" in capsys.readouterr().err


def test_folders_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b/c.yaml"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        text = (PLANS / "rule.yaml").read_text().replace("name: firmware", f"name: {folder.stem}")
        (folder / "rule.yaml").write_text(text)
    words = ["plan", "-f", str(tmp_path), "--snapshot", str(PLANS / "cluster.yaml"), "-o", "json"]

    assert main(words) == 2
    assert "; use -R to read subdirectories" in capsys.readouterr().err
    assert main([*words, "-R"]) in (0, 3)
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert changes == ["DeviceTaintRule/a created", "DeviceTaintRule/c created"]


def test_times_in_files_need_no_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: x}\n"
        "spec: {deviceSelector: {pool: node-3},"
        " taint: {key: k, effect: NoExecute, timeAdded: 2026-01-01T00:00:00Z}}\n"
    )

    assert main(["plan", "-f", str(rule), "--snapshot", str(PLANS / "cluster.yaml")]) == 0
    assert "would be created" in capsys.readouterr().out


def _parts(tmp_path: Path, *kinds: str) -> list[str]:
    """Write the objects of some kinds of the cluster into a file each."""
    import yaml

    whole = yaml.safe_load((PLANS / "cluster.yaml").read_text())
    results = []
    for kind in kinds:
        file = tmp_path / f"{kind}.yaml"
        chosen = [item for item in whole["items"] if item["kind"] == kind]
        file.write_text(yaml.safe_dump(whole | {"items": chosen}))
        results += ["--snapshot", str(file)]
    return results


def test_several_files_are_one_snapshot(tmp_path: Path) -> None:
    words = ("plan", "-f", "rule.yaml", "-o", "json", "--snapshot")
    kinds = (
        "ResourceSlice",
        "DeviceClass",
        "ResourceClaim",
        "Pod",
        "Node",
        "ResourceClaimTemplate",
    )
    others = ("ReplicaSet", "ResourceSlicePatch", "PodDisruptionBudget", "DeviceTaintRule")
    parts = _parts(tmp_path, *kinds, *others)[1:]

    whole = piped(*words, "cluster.yaml", env=environment(), cwd=PLANS)
    joined = piped(*words, *parts, env=environment(), cwd=PLANS)

    assert (joined.returncode, joined.stderr) == (whole.returncode, whole.stderr)
    assert joined.stdout.partition('"changes"')[2] == whole.stdout.partition('"changes"')[2]


MISSING: dict[str, tuple[tuple[str, ...], int, str]] = {
    "only slices": (("ResourceSlice",), 1, "is not known without resourceclaims"),
    "no pods": (("ResourceSlice", "ResourceClaim"), 1, "is not known without pods"),
    "no slices": (("Pod", "ResourceClaim"), 1, "resourceslices are required here"),
    "no nodes": (
        ("ResourceSlice", "ResourceClaim", "Pod", "DeviceClass"),
        1,
        "where pods would be rescheduled is not known without nodes",
    ),
    "no classes": (
        ("ResourceSlice", "ResourceClaim", "Pod", "Node"),
        1,
        "where pods would be rescheduled is not known without deviceclasses",
    ),
}


@pytest.mark.parametrize(("kinds", "code", "text"), MISSING.values(), ids=MISSING)
def test_what_is_missing_is_reported_and_no_review_passes(
    kinds: tuple[str, ...],
    code: int,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["plan", "-f", str(PLANS / "rule.yaml"), *_parts(tmp_path, *kinds)]

    assert main(words) == code
    shown = capsys.readouterr()
    assert text in shown.err
    assert not shown.out or "as far as known." in shown.out


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_effects_are_offered_with_their_meaning_and_gate(effect: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_taint_args(["device", "a", "key=value"])

    _, _, rest = str(caught.value).partition(f"    {effect} ")
    meaning = rest or str(caught.value).partition(f"    {effect}\n")[2]
    assert meaning.strip()
    assert EFFECTS[effect].feature_gate in str(caught.value)
