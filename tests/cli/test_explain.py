"""`sully explain` as people and scripts see it; every kind of cause is in tests/explain.

Each file in explained/pipe and explained/terminal begins with a command about the cluster in
explained/cluster.yaml; what follows is what it prints, to the letter.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from cli.terminals import environment, terminal
from sully.cli.completion import candidates
from sully.cli.main import main

EXPLAINED = Path(__file__).parent / "explained"
CLUSTER = str(EXPLAINED / "cluster.yaml")


def _screens(folder: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((EXPLAINED / folder).glob("*.txt"))}


def _command(path: Path) -> tuple[list[str], str]:
    first, _, rest = path.read_text().partition("\n")
    arguments = shlex.split(first.removeprefix("$ sully "))
    return [*arguments, "--snapshot", CLUSTER], rest


@pytest.mark.parametrize("path", _screens("pipe").values(), ids=_screens("pipe"))
def test_in_a_pipe(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, want = _command(path)

    code = main(arguments)

    shown = capsys.readouterr()
    end = f"[exit {code}]\n" if code else ""
    assert shown.out + shown.err + end == want


@pytest.mark.slow
@pytest.mark.parametrize("path", _screens("terminal").values(), ids=_screens("terminal"))
def test_in_a_terminal(path: Path) -> None:
    arguments, want = _command(path)

    with terminal(*arguments, env=environment()) as screen:
        code = screen.end()

    assert (code, screen.shown) == (0, want)
    assert max(len(line) for line in screen.shown.splitlines()) <= 80


REFUSED = {
    "a kind that cannot be explained": (
        ["service", "web"],
        2,
        'unknown value "service" (one of: pod, claim, device',
    ),
    "a kind that was meant": (["polcy", "ecc"], 2, 'did you mean "policy"'),
    "a device that was meant": (["device", "a/gpu-1"], 1, 'did you mean "gpu.example.com/a/gpu-0"'),
    "no name": (["pod"], 2, "missing argument: NAME"),
    "two namespaces": (["pod", "ml/x", "-n", "web"], 2, "ml/x is not in namespace web"),
    "several devices": (["device", "gpu-0"], 2, '"gpu-0" matches 2 devices'),
    "a cluster for a pod": (
        ["pod", "x", "--cluster", "eu-1"],
        2,
        "--cluster can only be used with a placement",
    ),
    "no such pod": (["pod", "x"], 1, 'pod "default/x" not found'),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refused(
    case: tuple[list[str], int, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments, want, text = case
    twins = tmp_path / "twins.yaml"
    twins.write_text("---\n".join(_SLICE.format(node=name) for name in ("a", "b")))

    code = main(["explain", *arguments, "--snapshot", str(twins)])

    shown = capsys.readouterr()
    assert (code, shown.out) == (want, "")
    assert text in shown.err


SEVERAL = {
    "names": (["device", "a/gpu-0", "b/gpu-0"], 0, ["a/gpu-0", "b/gpu-0"], ""),
    "a name twice": (["device", "a/gpu-0", "b/gpu-0", "a/gpu-0"], 0, ["a/gpu-0", "b/gpu-0"], ""),
    "with their kinds": (["device/a/gpu-0", "device/b/gpu-0"], 0, ["a/gpu-0", "b/gpu-0"], ""),
    "one that does not exist": (
        ["device", "a/gpu-0", "b/gpu-7", "b/gpu-0"],
        1,
        ["a/gpu-0", "b/gpu-0"],
        'error: device "b/gpu-7" not found',
    ),
    "other kinds": (
        ["device/a/gpu-0", "pod/x"],
        1,
        ["a/gpu-0"],
        'pod "default/x" not found',
    ),
}


@pytest.mark.parametrize("case", SEVERAL.values(), ids=SEVERAL.keys())
def test_several(
    case: tuple[list[str], int, list[str], str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    arguments, want, names, text = case
    twins = tmp_path / "twins.yaml"
    twins.write_text("---\n".join(_SLICE.format(node=name) for name in ("a", "b")))
    command = ["explain", *arguments, "--snapshot", str(twins)]

    assert main(command) == want
    shown = capsys.readouterr()
    assert [line for line in shown.out.splitlines() if line.startswith("Device ")][::2] == [
        f"Device gpu.example.com/{name}: Free (NotTainted)" for name in names
    ]
    assert text in shown.err
    # What a file lacks is reported once.
    assert shown.err.count("no nodes found") <= 1
    assert main([*command, "-o", "json"]) == want
    listed = json.loads(capsys.readouterr().out)["explanations"]
    assert [one["name"] for one in listed] == [f"gpu.example.com/{name}" for name in names]


_SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {node}, uid: {node}, resourceVersion: "1"}}
spec:
  driver: gpu.example.com
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: gpu-0}}]
"""


LACKING = {
    "a pod, of pods alone": (
        ["pod", "ml/trainer"],
        {"Pod"},
        "no deviceclasses, nodes, resourceclaims, resourceslices found",
    ),
    "a pod, without nodes": (
        ["pod", "ml/trainer"],
        {"Pod", "ResourceClaim", "ResourceSlice", "DeviceClass"},
        "no nodes found; assuming that there are none",
    ),
    "a placement, without what it chooses from": (
        ["placement", "web/shop"],
        {"Placement"},
        "no managedclusters, managedclustersetbindings, managedclustersets, placementdecisions",
    ),
}


@pytest.mark.parametrize(("arguments", "kinds", "text"), LACKING.values(), ids=LACKING)
def test_what_a_file_lacks_is_reported(
    arguments: list[str],
    kinds: set[str],
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    items = yaml.safe_load(Path(CLUSTER).read_text())["items"]
    selected = [item for item in items if item["kind"] in kinds]
    (tmp_path / "some.yaml").write_text(yaml.safe_dump_all(selected))

    code = main(["explain", *arguments, "--snapshot", str(tmp_path / "some.yaml")])

    shown = capsys.readouterr()
    assert code == 0
    assert f"warning: {tmp_path}/some.yaml: {text}" in shown.err


def test_what_a_file_of_one_namespace_lacks_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = yaml.safe_load(Path(CLUSTER).read_text())
    part = whole | {"listedKinds": ["pods", "resourceclaims.resource.k8s.io"]}
    (tmp_path / "ml.yaml").write_text(yaml.safe_dump(part | {"listedNamespace": "ml"}))

    code = main(["explain", "pod", "ml/trainer", "--snapshot", str(tmp_path / "ml.yaml")])

    assert code == 0
    assert (
        "ml.yaml: only namespace ml; other namespaces are not considered" in capsys.readouterr().err
    )


def test_shells_offer_the_kinds() -> None:
    assert candidates(["explain", "p"]) == ["pod", "patch", "placement", "policy"]
    assert candidates(["explain", "pod", "x", "-o", ""]) == ["table", "json", "yaml"]
