"""What is wrong with pods, and in which words."""

from typing import Any

import pytest

from api.core.bodies import container, mounted, pod
from api.core.writing import create
from sully.api.core.pods.spec.containers import PodNames, ephemeral_containers
from sully.machinery.fields import Path

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def _with(**fields: Any) -> dict[str, Any]:
    return pod(container(**fields), automountServiceAccountToken=False)


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _amount(name: str, resource: str, unit: str) -> dict[str, Any]:
    return {
        "name": name,
        "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": unit}},
    }


def _shown(path: str) -> dict[str, Any]:
    return {"path": "x", "fieldRef": {"fieldPath": path}}


def _token(seconds: int) -> dict[str, Any]:
    return {"serviceAccountToken": {"path": f"t{seconds}", "expirationSeconds": seconds}}


def _affinity(**rules: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": rules})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AT = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"

ARMOR = "spec.securityContext.appArmorProfile.localhostProfile"
CONTEXT = (
    '{"Capabilities":{"Add":["CAP_CHOWN","CAP_SYS_ADMIN"],"Drop":null},"Privileged":true,'
    '"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,'
    '"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,'
    '"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}'
)

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing wrong": (pod(), []),
    "no containers": (
        {"spec": {"containers": []}},
        ["spec.containers: Required value"],
    ),
    "no containers, but resources of the pod": (
        {"spec": {"containers": [], "resources": {"requests": {"cpu": "1"}}}},
        ["spec.containers: Required value"],
    ),
    "container without name and image": (
        pod({"name": ""}),
        [
            "spec.containers[0].name: Required value",
            "spec.containers[0].image: Required value",
        ],
    ),
    "container name": (
        pod(container(name="A_b")),
        [f'spec.containers[0].name: Invalid value: "A_b": {LABEL}'],
    ),
    "container twice": (
        pod(container(), container()),
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    "init container with the name of another": (
        pod(initContainers=[container()]),
        ['spec.initContainers[0].name: Duplicate value: "c"'],
    ),
    "probe on an init container": (
        pod(initContainers=[container(name="i", livenessProbe={"exec": {"command": ["x"]}})]),
        [
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers"
            " without restartPolicy=Always"
        ],
    ),
    "probe on a sidecar": (
        pod(
            initContainers=[
                container(
                    name="i", restartPolicy="Always", livenessProbe={"exec": {"command": ["x"]}}
                )
            ]
        ),
        [],
    ),
    "spaces around an image": (
        _with(image=" x "),
        [
            'spec.containers[0].image: Invalid value: " x ": must not have leading or trailing'
            " whitespace"
        ],
    ),
    "pull policy": (
        _with(imagePullPolicy="Sometimes"),
        [
            'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values:'
            ' "Always", "IfNotPresent", "Never"'
        ],
    ),
    "ports": (
        _with(ports=[{"containerPort": 0}, {"containerPort": 70000, "protocol": "X"}]),
        [
            "spec.containers[0].ports[0].containerPort: Required value",
            "spec.containers[0].ports[1].containerPort: Invalid value: 70000:"
            " must be between 1 and 65535, inclusive",
            'spec.containers[0].ports[1].protocol: Unsupported value: "X": supported values:'
            ' "SCTP", "TCP", "UDP"',
        ],
    ),
    "port name": (
        _with(ports=[{"containerPort": 1, "name": "-"}]),
        [
            'spec.containers[0].ports[0].name: Invalid value: "-": must contain at least one'
            " letter (a-z)",
            'spec.containers[0].ports[0].name: Invalid value: "-": must not begin or end with a'
            " hyphen",
        ],
    ),
    "port of the node twice": (
        _with(ports=[{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]),
        ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//5"'],
    ),
    "request above the limit": (
        _with(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        [
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal'
            " to cpu limit of 1"
        ],
    ),
    "negative amount": (
        _with(resources={"requests": {"cpu": "-1"}}),
        [
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than'
            " or equal to 0"
        ],
    ),
    "unknown resource": (
        _with(resources={"requests": {"apples": "1"}}),
        [
            'spec.containers[0].resources.requests[apples]: Invalid value: "apples": must be a'
            " standard resource type or fully qualified",
            'spec.containers[0].resources.requests[apples]: Invalid value: "apples": must be a'
            " standard resource for containers",
        ],
    ),
    "half a device": (
        _with(resources={"limits": {"example.com/gpu": "500m"}}),
        [
            'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be'
            " an integer",
            'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must'
            " be an integer",
        ],
    ),
    "device without a limit": (
        _with(resources={"requests": {"example.com/gpu": "1"}}),
        [
            "spec.containers[0].resources.limits: Required value: Limit must be set for non"
            " overcommitable resources"
        ],
    ),
    "claim named as a whole after a part": (
        {
            "spec": {
                "containers": [
                    container(resources={"claims": [{"name": "g", "request": "r"}, {"name": "g"}]})
                ],
                "resourceClaims": [{"name": "g", "resourceClaimName": "x"}],
            }
        },
        ['spec.containers[0].resources.claims[1]: Duplicate value: "g"'],
    ),
    "mount of an unknown volume": (
        _with(volumeMounts=[{"name": "none", "mountPath": "/x"}]),
        ['spec.containers[0].volumeMounts[0].name: Not found: "none"'],
    ),
    "two mounts in one place": (
        pod(
            container(volumeMounts=[{"name": "v", "mountPath": "/x"}] * 2),
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique'],
    ),
    "path that climbs": (
        mounted({"name": "v"}, subPath="../x"),
        ["spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'"],
    ),
    "volume that points nowhere": (
        pod(volumes=[{"name": "v", "secret": {}}]),
        ["spec.volumes[0].secret.secretName: Required value"],
    ),
    "two sources of one volume": (
        pod(volumes=[{"name": "v", "emptyDir": {}, "configMap": {"name": "m"}}]),
        ["spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type"],
    ),
    "volume twice": (
        pod(volumes=[{"name": "v"}, {"name": "v"}]),
        ['spec.volumes[1].name: Duplicate value: "v"'],
    ),
    "mode of files": (
        pod(volumes=[{"name": "v", "configMap": {"name": "m", "defaultMode": 512}}]),
        [
            "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number between"
            " 0 and 0777 (octal), both inclusive"
        ],
    ),
    "variable with two values": (
        _with(
            env=[
                {
                    "name": "A",
                    "value": "x",
                    "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                }
            ]
        ),
        [
            'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when'
            " `value` is not empty"
        ],
    ),
    "probe without action": (
        _with(readinessProbe={"periodSeconds": -1}),
        [
            "spec.containers[0].readinessProbe: Required value: must specify a handler type",
            "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater"
            " than or equal to 0",
        ],
    ),
    "liveness that wants two successes": (
        _with(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
        ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"],
    ),
    "restart policy": (
        pod(restartPolicy="Maybe"),
        [
            'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always",'
            ' "OnFailure", "Never"'
        ],
    ),
    "toleration without key": (
        pod(tolerations=[{"value": "x"}]),
        [
            'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key`'
            ' is empty, which means "match all values and all keys"'
        ],
    ),
    "toleration with seconds for another effect": (
        pod(tolerations=[{"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        [
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute'"
            " when `tolerationSeconds` is set"
        ],
    ),
    "toleration of anything with a value": (
        pod(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}]),
        [
            'spec.tolerations[0].operator: Invalid value: "v": value must be empty when `operator`'
            " is 'Exists'"
        ],
    ),
    "node selector without terms": (
        _affinity(**{REQUIRED: {"nodeSelectorTerms": []}}),
        [f"{AT}: Required value: must have at least one node selector term"],
    ),
    "node selector": (
        _affinity(
            **{
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "a", "operator": "In"},
                                {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                                {"key": "a", "operator": "Near"},
                            ],
                            "matchFields": [{"key": "x", "operator": "In", "values": ["n"]}],
                        }
                    ]
                }
            }
        ),
        [
            f"{AT}[0].matchExpressions[0].values: Required value: must be specified when"
            " `operator` is 'In' or 'NotIn'",
            f"{AT}[0].matchExpressions[1].values: Required value: must be specified single value"
            " when `operator` is 'Lt' or 'Gt'",
            f'{AT}[0].matchExpressions[2].operator: Invalid value: "Near": not a valid selector'
            " operator",
            f'{AT}[0].matchFields[0].key: Invalid value: "x": not a valid field selector key',
        ],
    ),
    "weight": (
        _affinity(
            preferredDuringSchedulingIgnoredDuringExecution=[{"weight": 0, "preference": {}}]
        ),
        [
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight:"
            " Invalid value: 0: must be in the range 1-100"
        ],
    ),
    "values of preferred nodes that no label can have": (
        _affinity(
            preferredDuringSchedulingIgnoredDuringExecution=[
                {
                    "weight": 1,
                    "preference": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]
                    },
                }
            ]
        ),
        [],
    ),
    "spread": (
        pod(
            topologySpreadConstraints=[
                {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "Cry"}
            ]
        ),
        [
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than"
            " zero",
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Cry":'
            ' supported values: "DoNotSchedule", "ScheduleAnyway"',
        ],
    ),
    "gate twice": (
        pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        ['spec.schedulingGates[1]: Duplicate value: "a"'],
    ),
    "deadline": (
        pod(activeDeadlineSeconds=0),
        [
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647,"
            " inclusive"
        ],
    ),
    "hooks that sleep longer than the pod has to end": (
        pod(
            container(
                lifecycle={
                    "postStart": {"sleep": {"seconds": -1}},
                    "preStop": {"sleep": {"seconds": 21}},
                }
            ),
            container(name="d", lifecycle={"preStop": {"sleep": {"seconds": 20}}}),
            terminationGracePeriodSeconds=20,
        ),
        [
            f"spec.containers[0].lifecycle.{hook}.sleep: Invalid value: {seconds}: must be"
            " non-negative and less than terminationGracePeriodSeconds (20)"
            for hook, seconds in (("postStart", -1), ("preStop", 21))
        ],
    ),
    "a hook that sleeps longer than pods have by default": (
        _with(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        [
            "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative"
            " and less than terminationGracePeriodSeconds (30)"
        ],
    ),
    "a hook with two actions": (
        _with(lifecycle={"preStop": {"sleep": {"seconds": 1}, "exec": {}}}),
        [
            "spec.containers[0].lifecycle.preStop.exec.command: Required value",
            "spec.containers[0].lifecycle.preStop.sleep: Forbidden: may not specify more than 1"
            " handler type",
        ],
    ),
    "init containers with the same port of the node, which run one by one": (
        pod(
            container(),
            initContainers=[
                container(name=name, ports=[{"containerPort": 1, "hostPort": 5}] * times)
                for name, times in (("i", 1), ("j", 2))
            ],
        ),
        ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//5"'],
    ),
    "init containers without names": (
        pod(container(), initContainers=[container(name=""), container(name="")]),
        [
            "spec.initContainers[0].name: Required value",
            "spec.initContainers[1].name: Required value",
        ],
    ),
    "ephemeral containers": (
        pod(ephemeralContainers=[container(name="e")]),
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
    "rights that contradict": (
        _with(
            securityContext={
                "privileged": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"add": ["CAP_CHOWN", "CAP_SYS_ADMIN"]},
            }
        ),
        [
            f"spec.containers[0].securityContext: Invalid value: {CONTEXT}: cannot set"
            f" `allowPrivilegeEscalation` to false and {what}"
            for what in ("`privileged` to true", "`capabilities.Add` CAP_SYS_ADMIN")
        ],
    ),
    "no such way to mount /proc": (
        _with(securityContext={"procMount": "Open"}),
        [
            'spec.containers[0].securityContext.procMount: Unsupported value: "Open": supported'
            ' values: "Default", "Unmasked"'
        ],
    ),
    "seccomp of no kind": (
        _with(securityContext={"seccompProfile": {"type": ""}}),
        [
            "spec.containers[0].securityContext.seccompProfile.type: Required value: type is"
            " required when seccompProfile is set"
        ],
    ),
    "seccomp of an unknown kind, with a file": (
        pod(securityContext={"seccompProfile": {"type": "Mine", "localhostProfile": "x"}}),
        [
            'spec.securityContext.seccompProfile.type: Unsupported value: "Mine": supported'
            ' values: "Localhost", "RuntimeDefault", "Unconfined"',
            "spec.securityContext.seccompProfile.localhostProfile: Invalid value:"
            ' {"Type":"Mine","LocalhostProfile":"x"}: can only be set when seccomp type is'
            " Localhost",
        ],
    ),
    "seccomp from a file that is not named": (
        pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
        [
            "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set"
            " when seccomp type is Localhost"
        ],
    ),
    "seccomp from a file elsewhere": (
        pod(securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "/a/.."}}),
        [
            f'spec.securityContext.seccompProfile.localhostProfile: Invalid value: "/a/..": {text}'
            for text in ("must be a relative path", "must not contain '..'")
        ],
    ),
    "profiles that are right": (
        pod(
            container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            securityContext={
                "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b"},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"},
                "sysctls": [{"name": "net/ipv4.tcp_syncookies", "value": "1"}],
                "fsGroupChangePolicy": "Always",
                "supplementalGroupsPolicy": "Strict",
                "seLinuxChangePolicy": "Recursive",
            },
        ),
        [],
    ),
    "AppArmor of no kind": (
        pod(securityContext={"appArmorProfile": {"type": ""}}),
        [
            "spec.securityContext.appArmorProfile.type: Required value: type is required when"
            " appArmorProfile is set"
        ],
    ),
    "AppArmor of an unknown kind": (
        pod(securityContext={"appArmorProfile": {"type": "Mine"}}),
        [
            'spec.securityContext.appArmorProfile.type: Unsupported value: "Mine": supported'
            ' values: "Localhost", "RuntimeDefault", "Unconfined"'
        ],
    ),
    "AppArmor without its profile": (
        pod(securityContext={"appArmorProfile": {"type": "Localhost"}}),
        [f"{ARMOR}: Required value: must be set when AppArmor type is Localhost"],
    ),
    "AppArmor with a profile in blanks": (
        pod(securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": " x"}}),
        [f'{ARMOR}: Invalid value: " x": must not be padded with whitespace'],
    ),
    "AppArmor with a long profile": (
        pod(
            securityContext={
                "appArmorProfile": {"type": "Localhost", "localhostProfile": "x" * 4096}
            }
        ),
        [f"{ARMOR}: Too long: may not be more than 4095 bytes"],
    ),
    "AppArmor with a profile that it does not use": (
        pod(securityContext={"appArmorProfile": {"type": "Unconfined", "localhostProfile": "x"}}),
        [f'{ARMOR}: Invalid value: "x": can only be set when AppArmor type is Localhost'],
    ),
    "settings of the kernel": (
        pod(
            securityContext={
                "sysctls": [{}, {"name": "Kernel"}, {"name": "kernel.sem"}, {"name": "kernel.sem"}]
            }
        ),
        [
            "spec.securityContext.sysctls[0].name: Required value",
            'spec.securityContext.sysctls[1].name: Invalid value: "Kernel": must have at most 253'
            r" characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*"
            "[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            'spec.securityContext.sysctls[3].name: Duplicate value: "kernel.sem"',
        ],
    ),
    "policies of groups and labels": (
        pod(
            securityContext={
                "fsGroupChangePolicy": "x",
                "supplementalGroupsPolicy": "y",
                "seLinuxChangePolicy": "z",
            }
        ),
        [
            'spec.securityContext.fsGroupChangePolicy: Unsupported value: "x": supported values:'
            ' "Always", "OnRootMismatch"',
            'spec.securityContext.supplementalGroupsPolicy: Unsupported value: "y": supported'
            ' values: "Merge", "Strict"',
            'spec.securityContext.seLinuxChangePolicy: Unsupported value: "z": supported values:'
            ' "MountOption", "Recursive"',
        ],
    ),
    "processes shared twice": (
        pod(shareProcessNamespace=True, hostPID=True),
        [
            "spec.shareProcessNamespace: Invalid value: true:"
            " ShareProcessNamespace and HostPID cannot both be enabled"
        ],
    ),
    "no DNS at all": (
        pod(dnsPolicy="None"),
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    "DNS without a server": (
        pod(dnsPolicy="None", dnsConfig={"searches": ["a"]}),
        [
            "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver"
            " when `dnsPolicy` is None"
        ],
    ),
    "DNS that is right": (
        pod(
            dnsPolicy="None",
            dnsConfig={
                "nameservers": ["10.0.0.1", "2001:db8::1"],
                "searches": [".", "_sip._tcp.example.com", "cluster.local."],
                "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
            },
        ),
        [],
    ),
    "DNS with too many servers": (
        pod(dnsConfig={"nameservers": ["1.1.1.1", "x", "1.1.1.1", "1.1.1.1"]}),
        [
            'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","x","1.1.1.1","1.1.1.1"]: must'
            " not have more than 3 nameservers",
            'spec.dnsConfig.nameservers[1]: Invalid value: "x": must be a valid IP address, (e.g.'
            " 10.9.8.7 or 2001:db8::ffff)",
        ],
    ),
    "DNS with bad search paths and options": (
        pod(dnsConfig={"searches": ["a b"], "options": [{"value": "2"}]}),
        [
            'spec.dnsConfig.searches[0]: Invalid value: "a b": a lowercase RFC 1123 subdomain must'
            " consist of lower case alphanumeric characters, '_', '-' or '.', and must start and"
            " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
            r" '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ],
    ),
    "fields of the pod in variables": (
        _with(
            env=[
                _field("a", "metadata.labels['a b']"),
                _field("b", "metadata.annotations['Example.com/x']"),
                _field("c", "metadata.labels['x"),
            ]
        ),
        [
            'spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "a b": name part must'
            " consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
            " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
            " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Invalid value:"
            ' "metadata.labels[\'x": error converting fieldPath: field label not supported:'
            " metadata.labels['x",
        ],
    ),
    "amounts in variables": (
        _with(
            env=[
                _amount("a", "limits.cpu", "5"),
                _amount("b", "requests.memory", "1Mi"),
                _amount("c", "requests.ephemeral-storage", "5Mi"),
                _amount("d", "limits.gpu", "0"),
                _amount("e", "limits.hugepages-2Mi", "1Ki"),
            ]
        ),
        [
            "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value:"
            ' "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource',
            "spec.containers[0].env[2].valueFrom.resourceFieldRef.divisor: Invalid value:"
            ' "requests.ephemeral-storage": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki,'
            " 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local ephemeral storage resource",
            "spec.containers[0].env[3].valueFrom.resourceFieldRef.resource: Unsupported value:"
            ' "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage",'
            ' "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
        ],
    ),
    "a volume with a field that volumes cannot show": (
        pod(volumes=[{"name": "v", "downwardAPI": {"items": [_shown("spec.nodeName")]}}]),
        [
            "spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value:"
            ' "spec.nodeName": supported values: "metadata.annotations", "metadata.labels",'
            ' "metadata.name", "metadata.namespace", "metadata.uid"'
        ],
    ),
    "a volume that shows labels": (
        pod(volumes=[{"name": "v", "downwardAPI": {"items": [_shown("metadata.labels")]}}]),
        [],
    ),
    "a token for too short or too long": (
        pod(volumes=[{"name": "v", "projected": {"sources": [_token(599), _token(2**32 + 1)]}}]),
        [
            "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid"
            " value: 599: may not specify a duration less than 10 minutes",
            "spec.volumes[0].projected.sources[1].serviceAccountToken.expirationSeconds: Invalid"
            " value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ],
    ),
    "mounts that reach the host": (
        pod(
            container(
                volumeMounts=[
                    {"name": "v", "mountPath": "/a", "mountPropagation": "Both"},
                    {"name": "v", "mountPath": "/b", "mountPropagation": "Bidirectional"},
                ]
            ),
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        [
            'spec.containers[0].volumeMounts.mountPropagation: Unsupported value: "Both": supported'
            ' values: "Bidirectional", "HostToContainer", "None"',
            "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount"
            " propagation is available only to privileged containers",
        ],
    ),
    "a probe with a bad header": (
        _with(livenessProbe={"httpGet": {"port": 80, "httpHeaders": [{"name": "a b"}]}}),
        [
            'spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: "a b": a valid'
            " HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name',"
            " regex used for validation is '[-A-Za-z0-9]+')"
        ],
    ),
    "host alias": (
        pod(hostAliases=[{"ip": "nowhere", "hostnames": ["a"]}]),
        [
            'spec.hostAliases[0].ip: Invalid value: "nowhere": must be a valid IP address, (e.g.'
            " 10.9.8.7 or 2001:db8::ffff)"
        ],
    ),
}


@pytest.mark.parametrize(("body", "want"), CASES.values(), ids=CASES.keys())
def test_create(body: dict[str, Any], want: list[str]) -> None:
    assert create("pods", body).texts() == want


TOKENS = {
    "another name": (("kube-api-access-bbbbb", "kube-api-access-bbbbb"), []),
    "mounted by another name": (
        ("kube-api-access-bbbbb", "kube-api-access-ccccc"),
        ["spec.containers[0].volumeMounts[0].name"],
    ),
    "mounted as any": (
        ("kube-api-access-bbbbb", "kube-api-access-*"),
        ["spec.containers[0].volumeMounts[0].name"],
    ),
    "named as any": (
        ("kube-api-access-*", "kube-api-access-*"),
        ["spec.volumes[0].name", *(f"spec.containers[0].volumeMounts[{n}].name" for n in (0, 1))],
    ),
}


@pytest.mark.parametrize(("names", "want"), TOKENS.values(), ids=TOKENS.keys())
def test_a_valid_spec_vouches_only_for_equal_ones(names: tuple[str, str], want: list[str]) -> None:
    first, other = (
        _with_token("kube-api-access-aaaaa", "kube-api-access-aaaaa"),
        _with_token(*names),
    )
    assert create("pods", first).problems == []

    assert [problem.field for problem in create("pods", other).problems] == want


def test_ephemeral_containers_have_no_life_of_their_own() -> None:
    probes = {
        "resources": {"limits": {"cpu": "1"}},
        "restartPolicy": "",
        "livenessProbe": {},
        "lifecycle": {},
    }
    first = container(name="e", terminationMessagePolicy="File", imagePullPolicy="Always")
    values = [first | probes, first | {"name": "f", "resources": {}}]

    got = ephemeral_containers(values, {"c"}, PodNames({}, ()), Path("at"))

    assert [str(problem) for problem in got] == [
        f"at[0].{name}: Forbidden: cannot be set for an Ephemeral Container" for name in probes
    ]


def _with_token(volume: str, mount: str) -> dict[str, Any]:
    mounts = [{"name": mount, "mountPath": "/token"}]
    return pod(
        containers=[container(volumeMounts=mounts)], volumes=[{"name": volume, "emptyDir": {}}]
    )
