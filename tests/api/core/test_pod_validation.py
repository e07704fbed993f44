"""What is wrong with pods, and in which words."""

from typing import Any

import pytest

from api.core.bodies import container, mounted, pod
from api.core.writing import create

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def _with(**fields: Any) -> dict[str, Any]:
    return pod(container(**fields), automountServiceAccountToken=False)


def _affinity(**rules: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": rules})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AT = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing wrong": (pod(), []),
    "no containers": (
        {"spec": {"containers": []}},
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
            'spec.tolerations[0].operator: Invalid value: {"Key":"k","Operator":"Exists",'
            '"Value":"v","Effect":"","TolerationSeconds":null}: value must be empty when'
            " `operator` is 'Exists'"
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
    "ephemeral containers": (
        pod(ephemeralContainers=[container(name="e")]),
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
    "rights that contradict": (
        _with(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        [
            'spec.containers[0].securityContext: Invalid value: {"privileged":true,'
            '"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and'
            " `privileged` to true"
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


def test_claim_made_for_a_pod_must_get_a_name() -> None:
    body = pod(
        metadata={"name": "p" * 250},
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
    )

    (problem,) = create("pods", body).problems

    assert problem.field == "spec.resourceClaims[0].name"
    assert problem.body.endswith("final ResourceClaim name: must be no more than 253 bytes")
