"""Services: a stable name and address for a set of pods.

They are stored and validated only: no controller creates endpoints, and neither cluster IPs nor
node ports are allocated.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.core.checks import Errors, dns_label, dns_subdomain, label_key, labels, one_of
from sully.api.core.columns import NAME, NONE, UNKNOWN, age_cell, plain
from sully.api.core.namespaces import unsupported_label
from sully.api.core.pods.spec.dns import NOT_AN_ADDRESS, is_address
from sully.api.core.pods.spec.ports import port_number, port_reference
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_label_problems
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

SPEC = Path("spec")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_EXPOSED = ("LoadBalancer", "NodePort")
_POLICIES = ("Cluster", "Local")
_FAMILIES = ("IPv4", "IPv6")
_SINGLE, _REQUIRE_DUAL = "SingleStack", "RequireDualStack"
_FAMILY_POLICIES = ("PreferDualStack", _REQUIRE_DUAL, _SINGLE)
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_AFFINITY_SECONDS = 10800
_LONGEST_AFFINITY = 86400
_HEADLESS = ["None"]
_OF_ADDRESSES = (
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "internalTrafficPolicy",
)


class ServiceStrategy(Strategy, frozen=True):
    """Writes to the service itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in type, affinity, traffic policies, protocols and target ports."""
        spec = obj["spec"]
        spec["type"] = kind = spec.get("type") or "ClusterIP"
        _default_affinity(spec)
        for port in spec.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"
            port["targetPort"] = port.get("targetPort") or port["port"]
        if kind in _EXPOSED or (kind == "ClusterIP" and spec.get("externalIPs")):
            spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
        if kind != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a load balancer, in the address family of a cluster with one."""
        obj["status"] = {"loadBalancer": {}}
        _fill_addresses(obj["spec"])
        _fill_families(obj["spec"], {})

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; drop addresses that an alias has no use for."""
        obj["status"] = old["status"]
        spec, before = obj["spec"], old["spec"]
        if spec["type"] == "ExternalName" != before.get("type"):
            for name in _OF_ADDRESSES:
                if name in spec and spec[name] == before.get(name):
                    del spec[name]
        if "ExternalName" not in (spec["type"], before.get("type")) and before.get("clusterIP"):
            # A client that replaces the service need not know its address.
            if not spec.get("clusterIP"):
                spec["clusterIP"] = before["clusterIP"]
            if not spec.get("clusterIPs") and spec["clusterIP"] == before["clusterIP"]:
                spec["clusterIPs"] = list(before.get("clusterIPs") or ())
        if spec.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
            # Clients may know only one of the two fields, and change that one.
            spec["clusterIPs"] = [spec["clusterIP"], *(spec.get("clusterIPs") or ())[1:]]
        _fill_addresses(spec)
        _fill_families(spec, before)

    def validate_first(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the addresses, which Kubernetes allocates before it validates anything else."""
        return _addresses(obj["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check type, ports, selector and affinity."""
        spec = obj["spec"]
        headless = spec.get("clusterIPs") == _HEADLESS
        if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
            yield SPEC.child("ports").required()
        yield from _type(spec, headless=headless)
        yield from _ports(spec)
        yield from labels(spec.get("selector") or {}, SPEC.child("selector"))
        yield from _affinity(spec)
        yield from _external_ips(spec)
        yield from one_of(spec["type"], _TYPES, SPEC.child("type"))
        yield from _distinct_ports(spec)
        yield from _load_balancer(spec)
        yield from _traffic(spec)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that the address stays."""
        yield from _same_addresses(obj["spec"], old["spec"])
        yield from self.validate_create(obj, ctx)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about settings that a headless service does not use."""
        spec = obj["spec"]
        if spec.get("clusterIPs") == _HEADLESS:
            if spec.get("loadBalancerIP"):
                yield "spec.loadBalancerIP is ignored for headless services"
            if spec.get("externalIPs"):
                yield "spec.externalIPs is ignored for headless services"
            if spec["sessionAffinity"] != "None":
                yield "spec.SessionAffinity is ignored for headless services"
        if spec["type"] != "ExternalName" and spec.get("externalName"):
            yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
        if spec.get("trafficDistribution") == "PreferClose":
            yield ('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')

    def validate_name(self, name: str) -> Sequence[str]:
        """Require a DNS label: the name becomes a part of a host name."""
        return dns_label_problems(name)


class ServiceStatusStrategy(ServiceStrategy, frozen=True):
    """Writes to the status endpoint."""

    def validate_first(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check nothing: the addresses stay."""
        return iter(())

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that entry points have addresses of the right form."""
        at = Path("status.loadBalancer.ingress")
        balancer = obj["status"]["loadBalancer"]
        if obj["spec"].get("type") != "LoadBalancer" and balancer.get("ingress"):
            yield at.forbidden("may only be used when `spec.type` is 'LoadBalancer'")
            return
        for position, ingress in enumerate(balancer.get("ingress") or ()):
            address = ingress.get("ip", "")
            if address and not is_address(address):
                yield at.index(position).child("ip").invalid(address, NOT_AN_ADDRESS)


def _fill_addresses(spec: Obj) -> None:
    """Write the address under both names: clients may set one of the two."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _fill_families(spec: Obj, before: Obj) -> None:
    if spec["type"] == "ExternalName":
        return
    # Without a selector, something else maintains the endpoints, possibly of both families.
    anything = spec.get("clusterIPs") == _HEADLESS and not spec.get("selector")
    default = before.get("ipFamilyPolicy") or (_REQUIRE_DUAL if anything else _SINGLE)
    policy = spec.setdefault("ipFamilyPolicy", default)
    families = spec.get("ipFamilies") or ["IPv4"]
    if policy == _SINGLE and families == before.get("ipFamilies"):
        families = families[:1]
    elif policy != _SINGLE and anything:
        families = [*families, *(family for family in _FAMILIES if family not in families)]
    spec["ipFamilies"] = families


def _default_affinity(spec: Obj) -> None:
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {})
        config.setdefault("clientIP", {}).setdefault("timeoutSeconds", _AFFINITY_SECONDS)


def _type(spec: Obj, *, headless: bool) -> Errors:
    kind = spec["type"]
    if kind in _EXPOSED and headless:
        text = f"may not be set to 'None' for {kind} services"
        yield SPEC.child("clusterIPs").index(0).invalid("None", text)
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield SPEC.child(name).forbidden("may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        yield from dns_subdomain(name, SPEC.child("externalName"))
    else:
        yield SPEC.child("externalName").required()


def _ports(spec: Obj) -> Errors:
    ports = spec.get("ports") or []
    names: set[str] = set()
    for position, port in enumerate(ports):
        at, name = SPEC.child("ports").index(position), port.get("name", "")
        if name:
            yield from dns_label(name, at.child("name"))
            if name in names:
                yield at.child("name").duplicate(name)
            names.add(name)
        elif len(ports) > 1:
            yield at.child("name").required()
        yield from port_number(port["port"], at.child("port"))
        yield from one_of(port["protocol"], ("SCTP", "TCP", "UDP"), at.child("protocol"))
        yield from port_reference(port["targetPort"], at.child("targetPort"))
        if "appProtocol" in port:
            yield from label_key(port["appProtocol"], at.child("appProtocol"))


def _affinity(spec: Obj) -> Errors:
    kind, at = spec["sessionAffinity"], SPEC.child("sessionAffinity")
    yield from one_of(kind, ("ClientIP", "None"), at)
    if kind == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            text = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield SPEC.child("sessionAffinityConfig.clientIP.timeoutSeconds").invalid(seconds, text)


def _addresses(spec: Obj) -> Errors:
    if spec["type"] == "ExternalName":
        return
    one, every, at = spec.get("clusterIP", ""), spec.get("clusterIPs") or [], SPEC.child
    if one and every[0] != one:
        yield at("clusterIPs").invalid(every, "first value must match `clusterIP`")
    if every and not one:
        yield at("clusterIPs").invalid(every, "must be empty when `clusterIP` is not specified")
    yield from _families(spec)
    yield from _ip_list(every)


def _external_ips(spec: Obj) -> Errors:
    for position, address in enumerate(spec.get("externalIPs") or ()):
        if spec["type"] != "ExternalName" and not is_address(address):
            yield SPEC.child("externalIPs").index(position).invalid(address, NOT_AN_ADDRESS)


def _families(spec: Obj) -> Errors:
    families, at = spec.get("ipFamilies") or [], SPEC.child
    for position, family in enumerate(families):
        yield from one_of(family, _FAMILIES, at("ipFamilies").index(position))
        if family in families[:position]:
            yield at("ipFamilies").index(position).duplicate(family)
    if "ipFamilyPolicy" in spec:
        yield from one_of(spec["ipFamilyPolicy"], _FAMILY_POLICIES, at("ipFamilyPolicy"))


def _ip_list(every: list[str]) -> Errors:
    at = SPEC.child
    for position, address in enumerate(every):
        if position == 0 and address == "None":
            if len(every) > 1:
                text = "'None' must be the first and only value"
                yield at("clusterIPs").invalid(every, text)
        elif not is_address(address):
            yield at("clusterIPs").index(position).invalid(address, NOT_AN_ADDRESS)
    if len(every) > len(_FAMILIES):
        yield at("clusterIPs").invalid(every, "may only hold up to 2 values")


def _distinct_ports(spec: Obj) -> Errors:
    ports, at = spec.get("ports") or [], SPEC.child("ports")
    if spec["type"] == "ClusterIP":
        for position, port in enumerate(ports):
            if port.get("nodePort"):
                text = "may not be used when `type` is 'ClusterIP'"
                yield at.index(position).child("nodePort").forbidden(text)
    for name in ("nodePort", "port"):
        taken: set[tuple[str, int]] = set()
        for position, port in enumerate(ports):
            key = port["protocol"], port.get(name, 0)
            if key in taken and (key[1] or name == "port"):
                here = at.index(position)
                whole = here.child(name) if name == "nodePort" else here
                yield whole.duplicate(key[1] if name == "nodePort" else _shown(port))
            taken.add(key)


def _shown(port: Obj) -> Obj:
    """Show a port as Kubernetes does: the fields that are compared, in its own names."""
    return {
        "Name": "",
        "Protocol": port["protocol"],
        "AppProtocol": None,
        "Port": port["port"],
        "TargetPort": 0,
        "NodePort": 0,
    }


def _load_balancer(spec: Obj) -> Errors:
    if spec["type"] == "LoadBalancer":
        return
    text = "may only be used when `type` is 'LoadBalancer'"
    if spec.get("loadBalancerSourceRanges"):
        # Kubernetes writes this one with a capital letter.
        yield SPEC.child("LoadBalancerSourceRanges").forbidden(text)
    for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if name in spec:
            yield SPEC.child(name).forbidden(text)


def _traffic(spec: Obj) -> Errors:
    outside, at = spec.get("externalTrafficPolicy", ""), SPEC.child("externalTrafficPolicy")
    exposed = spec["type"] in _EXPOSED or (spec["type"] == "ClusterIP" and spec.get("externalIPs"))
    if exposed:
        yield from one_of(outside, _POLICIES, at)
    elif outside:
        yield at.invalid(outside, "may only be set for externally-accessible services")
    port = spec.get("healthCheckNodePort")
    if port and not (spec["type"] == "LoadBalancer" and outside == "Local"):
        text = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        yield SPEC.child("healthCheckNodePort").invalid(port, text)
    if "internalTrafficPolicy" in spec:
        inside = SPEC.child("internalTrafficPolicy")
        yield from one_of(spec["internalTrafficPolicy"], _POLICIES, inside)
    preference = spec.get("trafficDistribution")
    if preference is not None and preference not in _DISTRIBUTIONS:
        yield SPEC.child("trafficDistribution").not_supported(preference, _DISTRIBUTIONS)


def _same_addresses(spec: Obj, before: Obj) -> Errors:
    if "ExternalName" in (spec["type"], before.get("type")):
        return
    new, old = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if old and not new:
        text = "primary clusterIP can not be unset"
        yield SPEC.child("clusterIPs").index(0).invalid(new, text)
    elif old and new[0] != old[0]:
        yield SPEC.child("clusterIPs").index(0).invalid(new, "may not change once set")


def _cluster_ip(obj: Obj) -> str:
    return str((obj["spec"].get("clusterIPs") or [NONE])[0])


def _external(obj: Obj) -> str:
    spec = obj["spec"]
    kind = spec.get("type", "")
    external_ips = ",".join(spec.get("externalIPs") or ())
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        entries = obj["status"]["loadBalancer"].get("ingress") or ()
        addresses = ",".join(entry.get("ip") or entry.get("hostname", "") for entry in entries)
        return ",".join(filter(None, (addresses, external_ips))) or "<pending>"
    return external_ips or (NONE if kind in ("ClusterIP", "NodePort") else UNKNOWN)


def _port_list(obj: Obj) -> str:
    def shown(port: Obj) -> str:
        outside = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{outside}/{port.get('protocol', '')}"

    return ",".join(map(shown, obj["spec"].get("ports") or ())) or NONE


def _selector(obj: Obj) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted((obj["spec"].get("selector") or {}).items()))


SERVICES = ResourceType(
    group="",
    kind="Service",
    plural="services",
    singular="service",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1", delete_returns_object=True),),
    strategy=ServiceStrategy(reset=(("status",),)),
    status=ServiceStatusStrategy(reset=(("spec",),)),
    refused=("proxy",),
    short_names=("svc",),
    categories=("all",),
    columns=(
        NAME,
        Column(
            "Type",
            plain(lambda obj: obj["spec"].get("type", "")),
            description="Type of the service.",
        ),
        Column("Cluster-IP", plain(_cluster_ip), description="Virtual IP address."),
        Column("External-IP", plain(_external), description="Addresses outside the cluster."),
        Column("Port(s)", plain(_port_list), description="Ports of the service."),
        Column("Age", age_cell, description="Time since the object was created."),
        Column(
            "Selector",
            plain(lambda obj: _selector(obj) or NONE),
            priority=1,
            description="Labels of the selected pods.",
        ),
    ),
    selectable={
        "spec.clusterIP": lambda obj: str(obj["spec"].get("clusterIP", "")),
        "spec.type": lambda obj: str(obj["spec"].get("type", "")),
    },
    unknown_label=unsupported_label,
    create_on_update=True,
)
