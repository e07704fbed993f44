"""What every cluster has from the start."""

from sully.machinery.errors import AlreadyExists
from sully.server.inprocess import InProcess
from sully.server.requests import Ref

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def ensure_namespaces(api: InProcess) -> None:
    """Create the namespaces clients take for granted."""
    for name in NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await api.call("create", Ref("", "v1", "namespaces"), body=body)
        except AlreadyExists:
            continue
