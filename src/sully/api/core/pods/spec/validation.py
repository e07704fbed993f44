"""What is wrong with a pod spec, in a pod or in a template.

The order of the findings is that of Kubernetes, part by part; the parts are in the modules
beside this one. What a change may touch is in updates/update.py.
"""

from typing import Any

from sully.api.core.checks import (
    Errors,
    annotations,
    between,
    dns_label,
    dns_subdomain,
    label_key,
    labels,
)
from sully.api.core.pods.creation.repeated import without_token_name
from sully.api.core.pods.mirrors import validate_new_mirror
from sully.api.core.pods.spec import resources, scheduling, windows
from sully.api.core.pods.spec.containers import (
    PodNames,
    containers,
    ephemeral_containers,
    images_of_pods,
    init_containers,
)
from sully.api.core.pods.spec.dns import NOT_AN_ADDRESS, dns_config, is_address
from sully.api.core.pods.spec.environment import file_volumes
from sully.api.core.pods.spec.ports import host_network_ports
from sully.api.core.pods.spec.security import pod_security
from sully.api.core.pods.spec.volumes import volumes
from sully.api.core.taints import tolerations
from sully.machinery.fields import Path
from sully.machinery.memo import ValidValues

Obj = dict[str, Any]

SPEC = Path("spec")
_MAX_SECONDS = 2**31 - 1
_HOST_NAME_MAX = 64
_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_VALID_SPECS = ValidValues(256)


def validate_new_pod(pod: Obj, *, privileged: bool = True) -> Errors:
    """Yield everything wrong with a pod that is being created."""
    yield from validate_new_mirror(pod)
    encoded = without_token_name(pod["spec"])
    if _VALID_SPECS.has(encoded, privileged):
        return
    errors = _validate_new_spec(pod, privileged=privileged)
    yield from _VALID_SPECS.check(encoded, errors, privileged)


def _validate_new_spec(pod: Obj, *, privileged: bool) -> Errors:
    spec = pod["spec"]
    yield from validate_pod(pod, privileged=privileged)
    if spec.get("ephemeralContainers"):
        yield SPEC.child("ephemeralContainers").forbidden("cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        yield SPEC.child("nodeName").forbidden(text)


def validate_pod(pod: Obj, *, privileged: bool = True) -> Errors:
    """Yield everything wrong with a pod, new or changed."""
    yield from validate_spec(pod["spec"], SPEC, privileged=privileged)
    for name in ("containers", "initContainers"):
        yield from images_of_pods(pod["spec"].get(name) or [], SPEC.child(name))


def validate_spec(spec: Obj, at: Path, *, privileged: bool = True) -> Errors:
    """Yield everything wrong with the spec of a pod or template."""
    known, problems = volumes(spec.get("volumes") or [], at.child("volumes"))
    yield from problems
    claims = spec.get("resourceClaims") or []
    yield from resources.claims(claims, at.child("resourceClaims"))
    pod_names = PodNames(
        known,
        {claim.get("name", "") for claim in claims} - {""},
        privileged,
        spec.get("restartPolicy", ""),
        spec.get("hostUsers", True),
        spec.get("terminationGracePeriodSeconds"),
    )
    yield from containers(spec.get("containers") or [], pod_names, at.child("containers"))
    taken = {container.get("name", "") for container in spec.get("containers") or ()}
    first = spec.get("initContainers") or []
    yield from init_containers(first, taken, pod_names, at.child("initContainers"))
    debuggers = spec.get("ephemeralContainers") or []
    taken |= {container.get("name", "") for container in first}
    yield from ephemeral_containers(debuggers, taken, pod_names, at.child("ephemeralContainers"))
    yield from resources.pod_requirements(spec, pod_names.claims, at)
    yield from _policies(spec, at)
    yield from _placement(spec, at)
    yield from windows.host_process(spec, at, privileged=privileged)
    yield from _host_users(spec, at)
    yield from _names(spec, at)
    yield from _rest(spec, at)
    yield from file_volumes(spec, at)


def _host_users(spec: Obj, at: Path) -> Errors:
    """Check that a pod with users of its own shares nothing with its node."""
    if spec.get("hostUsers", True):
        return
    text = "when `hostUsers` is false"
    if spec.get("hostNetwork"):
        yield at.child("hostNetwork").forbidden(text)
    # Kubernetes writes these two in upper case.
    for name in ("hostPID", "hostIPC"):
        if spec.get(name):
            yield at.child(f"H{name[1:]}").forbidden(text)
    for container, here in windows.containers_of(spec, at):
        if container.get("volumeDevices"):
            yield here.child("volumeDevices").forbidden(text)


def _policies(spec: Obj, at: Path) -> Errors:
    if spec.get("hostNetwork"):
        yield from host_network_ports(spec.get("containers") or [], at.child("containers"))
    yield from _listed(spec.get("restartPolicy", ""), _RESTART, at.child("restartPolicy"))
    yield from _listed(spec.get("dnsPolicy", ""), _DNS, at.child("dnsPolicy"))
    yield from labels(spec.get("nodeSelector") or {}, at.child("nodeSelector"))
    yield from pod_security(spec, at)


def _listed(value: str, supported: tuple[str, ...], at: Path) -> Errors:
    """Check an enumeration whose values error texts list in an order of their own."""
    if not value:
        yield at.required()
    elif value not in supported:
        yield at.not_supported(value, supported)


def _placement(spec: Obj, at: Path) -> Errors:
    yield from scheduling.affinity(spec.get("affinity"), at.child("affinity"))
    yield from dns_config(spec, at.child("dnsConfig"))
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        here = at.child("readinessGates").index(position).child("conditionType")
        yield from label_key(gate.get("conditionType", ""), here)
    yield from scheduling.gates(spec.get("schedulingGates") or [], at.child("schedulingGates"))
    constraints = spec.get("topologySpreadConstraints") or []
    yield from scheduling.spread(constraints, at.child("topologySpreadConstraints"))


def _names(spec: Obj, at: Path) -> Errors:
    if "hostnameOverride" in spec:
        yield from _host_name(spec, at.child("hostnameOverride"))
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from dns_subdomain(spec[name], at.child(name))
    if "activeDeadlineSeconds" in spec:
        seconds = spec["activeDeadlineSeconds"]
        yield from between(seconds, 1, _MAX_SECONDS, at.child("activeDeadlineSeconds"))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from dns_label(spec[name], at.child(name))


def _host_name(spec: Obj, at: Path) -> Errors:
    name, text = spec["hostnameOverride"], "may not be specified when"
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            yield at.forbidden(f"{text} {other} is true")
    if len(name.encode()) > _HOST_NAME_MAX:
        yield at.too_long(_HOST_NAME_MAX)
    yield from dns_subdomain(name, at)


def _rest(spec: Obj, at: Path) -> Errors:
    yield from tolerations(spec.get("tolerations") or [], at.child("tolerations"))
    yield from _host_aliases(spec.get("hostAliases") or [], at.child("hostAliases"))
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            yield from dns_subdomain(spec[name], at.child(name))
    if "preemptionPolicy" in spec:
        yield from _listed(spec["preemptionPolicy"], _PREEMPTION, at.child("preemptionPolicy"))
    overhead = {"limits": spec.get("overhead") or {}}
    yield from resources.requirements(overhead, (), at.child("overhead"))
    if "os" in spec:
        yield from _system(spec, at)


def _system(spec: Obj, at: Path) -> Errors:
    match spec["os"].get("name", ""):
        case "linux":
            yield from windows.only_of_linux(spec, at)
        case "windows":
            yield from windows.only_of_windows(spec, at)
        case "":
            yield at.child("os", "name").required()
        case unknown:
            yield at.child("os").not_supported(unknown, ("linux", "windows"))


def _host_aliases(aliases: list[Obj], at: Path) -> Errors:
    for position, alias in enumerate(aliases):
        if not is_address(alias.get("ip", "")):
            yield at.index(position).child("ip").invalid(alias.get("ip", ""), NOT_AN_ADDRESS)
        here = at.index(position).child("hostnames")
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from dns_subdomain(name, here.index(number))


def validate_template(template: Obj, at: Path) -> Errors:
    """Yield everything wrong with a template of pods."""
    metadata = template["metadata"]
    yield from labels(metadata.get("labels") or {}, at.child("labels"))
    yield from annotations(metadata.get("annotations") or {}, at.child("annotations"))
    yield from validate_spec(template["spec"], at.child("spec"))
    if template["spec"].get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        yield at.child("spec", "ephemeralContainers").forbidden(text)
