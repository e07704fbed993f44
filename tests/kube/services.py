"""Services, which our own server does not have: as far as manifests for a cluster need them."""

from __future__ import annotations

from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType, Strategy, Version

PACKAGE = "io.k8s.api.core.v1.services"
TABLE = """\
Service: A way to pods.
  apiVersion string: Group and version.
  kind string: The kind.
  metadata meta.ObjectMeta emit: Name and more.
  spec ServiceSpec emit: What it leads to.

ServiceSpec: What a service leads to.
  clusterIP string: Its address.
  ports []ServicePort map(port,protocol) merge(port): Its ports.
  selector {}string: Its pods.
  type string: How it is reached.

ServicePort: One port.
  name string: Its name.
  port int32 required emit: Its number.
  protocol string default=TCP: What is spoken there.
  targetPort IntOrString: The port of the pods.

ServiceList: Many.
  apiVersion string: Group and version.
  items []Service required null: They.
  kind string: The kind.
  metadata meta.ListMeta emit: Which state.
"""


def add_services(scheme: Scheme) -> None:
    """Let a server have services."""
    scheme.tables.load(PACKAGE, "services", TABLE)
    versions = (Version("v1", PACKAGE),)
    kind = ResourceType("", "Service", "services", "service", True, versions, Strategy())
    scheme.add(kind)
