"""A pytest plugin for suites that create a kind cluster: they get the server of `KUBECONFIG`."""

import os
import shutil
import subprocess
from pathlib import Path

from pytest_kind import cluster  # type: ignore[import-not-found] # only where the suite runs


class RunningCluster:
    """What suites use of `pytest_kind.cluster.KindCluster`, for a server that runs already."""

    def __init__(self, *_args: object, **_options: object) -> None:
        self.kubeconfig_path = Path(os.environ["KUBECONFIG"])
        self.kubectl_path = Path(shutil.which("kubectl") or "kubectl")

    def create(self, *_args: object) -> None:
        """Nothing to do: it runs."""

    def delete(self) -> None:
        """Nothing to do: whoever started it stops it."""

    def kubectl(self, *args: str) -> str:
        """Run kubectl."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig_path), *args]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout


cluster.KindCluster = RunningCluster
