"""A control plane with the examples in it: `make demo`.

It keeps its data in a folder of its own, so it does not mix with `make up`. The examples are
applied as kubectl would apply them, through the same client the controllers use.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sully.api import build_scheme
from sully.client.http import HttpTransport
from sully.client.kubeconfig import load_kubeconfig
from sully.client.options import WriteOptions
from sully.client.transport import Kind
from sully.machinery.scheme import Scheme
from sully.testing.cluster import Process, process

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
MANAGER = WriteOptions(field_manager="sully-demo", force=True)


def main() -> int:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data/demo"))
    parser.add_argument("--listen", default="127.0.0.1:8443")
    options = parser.parse_args()
    # Whoever ends this program ends its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    flags = ("--listen", options.listen, "--log-level", "warning")
    with process(*flags, data_dir=options.data_dir) as plane:
        names = asyncio.run(apply_examples(plane.kubeconfig))
        print(f"ready at {plane.url}; applied: {', '.join(names)}\n")
        print(f"  export KUBECONFIG={plane.kubeconfig.resolve()}")
        print("  kubectl get nodes,deviceclasses,resourceslices,devicetaintrules,pods\n")
        print("Ctrl-C stops it.", flush=True)
        _follow(plane)
    return 0


def _follow(plane: Process) -> None:
    """Show what the server says until it ends, or someone ends it."""
    try:
        for line in plane.output():
            print(line, end="", flush=True)
    except KeyboardInterrupt:
        print()


async def apply_examples(kubeconfig: Path) -> list[str]:
    """Apply every example and return the names of the files."""
    scheme = build_scheme()
    access = load_kubeconfig([kubeconfig], required=True).access()
    async with HttpTransport(access) as transport:
        for obj in objects():
            kind = _kind(scheme, obj)
            if kind.namespaced:
                obj["metadata"].setdefault("namespace", "default")
            await transport.apply(kind, obj, MANAGER)
    return [path.name for path in sorted(EXAMPLES.glob("*.yaml"))]


def objects() -> Iterator[dict[str, Any]]:
    """Go through the objects of all examples, in order."""
    for path in sorted(EXAMPLES.glob("*.yaml")):
        yield from filter(None, yaml.safe_load_all(path.read_text()))


def _kind(scheme: Scheme, obj: dict[str, Any]) -> Kind[dict[str, Any]]:
    group, _, version = obj["apiVersion"].rpartition("/")
    found = scheme.by_kind(group, version, obj["kind"])
    if found is None:
        raise SystemExit(f"{obj['kind']} of {obj['apiVersion']} is not served")
    return Kind(group, version, found.plural, found.kind, dict, namespaced=found.namespaced)


if __name__ == "__main__":
    sys.exit(main())
