"""Why a pod has no node: every kind of refusal of devices, reported with its cause."""

from __future__ import annotations

import pytest

from explain.situation import Situation
from explain.waiters import ALL, BUSY, PLAIN, TOLERATES_FW, TWO, alone, waiting
from explain.worlds import (
    DRIVER,
    Obj,
    ask,
    at,
    claim,
    class_,
    device,
    node,
    patch,
    pod,
    request,
    rule,
    slice_,
    taint,
)

FOR_A_MINUTE = TOLERATES_FW | {"effect": "NoExecute", "tolerationSeconds": 60}


def in_pool(name: str, made: Obj) -> Obj:
    made["spec"]["pool"]["name"] = name
    return made


def sharing(memory: str, made: Obj) -> Obj:
    """Let a claim have a share of its device."""
    share = {"shareID": "00000000-0000-0000-0000-000000000001"}
    for result in made["status"]["allocation"]["devices"]["results"]:
        result |= share | {"consumedCapacity": {"memory": memory}}
    return made


DEVICES = {
    "a rule prevents scheduling": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", description="firmware update"),
        after=300,
        contains=(
            "Pod team/p has been Pending since 2030-01-01T12:00:00Z (5m ago): rule fw (created"
            " by alice) prevents scheduling on devices that it could use.",
            "Request gpu of claim team/c needs 1 device, and none is available: 2 are tainted",
            "2 devices have taint example.com/fw:NoSchedule from rule fw (created by alice),"
            ' added 2030-01-01T12:00:00Z (5m ago), reason "firmware update".',
        ),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoSchedule from rule fw in request gpu, or have the"
        " taint removed."
        " The pod would then be scheduled to node n1.",
    ),
    "a rule that evicts as budgets allow": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget"),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoExecuteWithPodDisruptionBudget",
    ),
    "a rule that ends by itself": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", annotations={"sully.dev/expires-at": at(3600)}),
        because=("DeviceTaintRule/fw",),
        contains=("until 2030-01-01T13:00:00Z (in 60m)",),
        helps="or wait until 2030-01-01T13:00:00Z (in 60m)",
    ),
    "its driver prevents scheduling": waiting(
        "DevicesTainted",
        node(),
        class_(),
        slice_(device("gpu-0", taint("NoExecute", "gpu.example.com/ecc", value="high"))),
        contains=(
            "1 device has taint gpu.example.com/ecc=high:NoExecute from slice slice-n1"
            " (driver gpu.example.com)",
        ),
        because=("ResourceSlice/slice-n1",),
        helps="Tolerate gpu.example.com/ecc=high:NoExecute",
    ),
    "its driver  prevents scheduling with a slice of taints": waiting(
        "DevicesTainted",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        slice_(name="marks", count=2, taints=[{"device": "gpu-0", "taint": taint()}]),
        first="slice marks (driver gpu.example.com) prevents scheduling on devices that it"
        " could use",
        because=("ResourceSlice/marks",),
        helps="Tolerate example.com/fw:NoSchedule from slice marks",
    ),
    "a patch prevents scheduling": waiting(
        "DevicesTainted",
        *PLAIN,
        {
            "kind": "ResourceSlicePatch",
            "metadata": {"name": "hot", "annotations": {"sully.dev/created-by": "bob"}},
            "spec": {"devices": {"taints": [taint()]}},
        },
        contains=("taint example.com/fw:NoSchedule from patch hot (created by bob)",),
        because=("ResourceSlicePatch/hot",),
        helps="from patch hot",
    ),
    "a patch  prevents scheduling, and so would the driver": waiting(
        "DevicesTainted",
        node(),
        class_(),
        slice_(device("gpu-0", taint())),
        patch("hot", taints=[taint(value="1")]),
        because=("ResourceSlicePatch/hot",),
        helps="Tolerate example.com/fw=1:NoSchedule from patch hot in request gpu. The pod would",
    ),
    "two rules, and both must be tolerated": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        rule("heat", key="example.com/heat"),
        because=("DeviceTaintRule/fw", "DeviceTaintRule/heat"),
        helps="Tolerate example.com/fw:NoSchedule from rule fw and example.com/heat:NoSchedule from"
        " rule heat in request gpu, or have the taints removed",
    ),
    "two rules, and one is enough": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        rule("heat", select={"device": "gpu-1"}, key="example.com/heat"),
        because=("DeviceTaintRule/fw", "DeviceTaintRule/heat"),
        helps="Tolerate example.com/fw:NoSchedule from rule fw in request gpu, or have the"
        " taint removed.",
    ),
    "the same taint twice, and both must be removed": waiting(
        "DevicesTainted",
        node(),
        class_(),
        slice_(device("gpu-0", taint())),
        rule("fw"),
        because=("DeviceTaintRule/fw", "ResourceSlice/slice-n1"),
        helps="Tolerate example.com/fw:NoSchedule from rule fw and example.com/fw:NoSchedule from"
        " slice slice-n1 in request gpu, or have the taints removed.",
    ),
    "the same taint elsewhere need not be removed": waiting(
        "DevicesTainted",
        node(),
        node("n2"),
        class_(),
        slice_(device("gpu-0")),
        slice_(device("gpu-0"), on="n2"),
        rule("fw", select={"pool": "n1"}),
        rule("heat", select={"pool": "n2"}),
        because=("DeviceTaintRule/fw", "DeviceTaintRule/heat"),
        helps="Tolerate example.com/fw:NoSchedule from rule fw in request gpu, or have the"
        " taint removed.",
    ),
    "a taint behind a user's use": waiting(
        "DevicesInUse",
        node(),
        class_(),
        slice_(device("gpu-0")),
        rule("fw"),
        claim("busy", holds=("n1/gpu-0",), pods=("q",), tolerations=[TOLERATES_FW]),
        pod("q", "busy", on="n1"),
        because=("ResourceClaim/team/busy",),
        helps="Tolerate example.com/fw:NoSchedule from rule fw in request gpu, or have the"
        " taint removed."
        " Also wait until claim team/busy (1 device, used by pod team/q)",
    ),
    "a request that has enough elsewhere must tolerate as well": alone(
        "DevicesTainted",
        node(),
        node("n2"),
        class_(),
        class_("big", "device.attributes['gpu.example.com'].size == 'big'"),
        class_("small", "device.attributes['gpu.example.com'].size == 'small'"),
        slice_(
            device("gpu-0", taint(key="example.com/a"), attributes={"size": "big"}),
            device("gpu-1", taint(key="example.com/b"), attributes={"size": "small"}),
        ),
        slice_(device("gpu-0", attributes={"size": "small"}), on="n2"),
        claim("c", request("big", cls="big"), request("small", cls="small")),
        pod("p", "c"),
        because=("ResourceSlice/slice-n1",),
        helps="Tolerate example.com/a:NoSchedule from slice slice-n1 and example.com/b:NoSchedule"
        " from slice slice-n1 in request big and small, or have the taints removed.",
    ),
    "the partner of a device has two claims": waiting(
        "DevicesInUse",
        *PLAIN,
        claim("one", holds=("n1/gpu-0",), pods=("q",)),
        claim("two", holds=("n1/gpu-1",), pods=("q",)),
        pod("q", "one", "two", on="n1"),
        asks=request(count=2),
        because=("ResourceClaim/team/one", "ResourceClaim/team/two"),
        helps="Wait until claim team/one (1 device, used by pod team/q) is deallocated.",
    ),
    "a toleration of another value does not help": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", value="4.2"),
        asks=request(tolerations=[TOLERATES_FW | {"operator": "Equal", "value": "4.1"}]),
        contains=(
            "Request gpu tolerates example.com/fw=4.1:NoSchedule, which has another value than"
            " example.com/fw=4.2:NoSchedule.",
        ),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw=4.2:NoSchedule",
    ),
    "the toleration is over": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", "NoExecute"),
        asks=request(tolerations=[FOR_A_MINUTE]),
        after=60,
        first="rule fw (created by alice) prevents scheduling on devices that it could use",
        contains=("Request gpu tolerates example.com/fw:NoExecute for 60s, which has expired.",),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoExecute from rule fw without tolerationSeconds in request"
        " gpu, or have the taint removed. The pod would then be scheduled to node n1.",
    ),
    "the toleration is not over yet": waiting(
        "NotScheduledYet",
        *PLAIN,
        rule("fw", "NoExecute"),
        asks=request(tolerations=[FOR_A_MINUTE]),
        after=59,
        first="although it would fit on node n1 now",
    ),
    "admin access needs a toleration too": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        asks=request(adminAccess=True),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoSchedule",
    ),
    "two claims, and one device is tainted": alone(
        "DevicesTainted",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        claim("c"),
        claim("d"),
        pod("p", "c", "d"),
        first="rule fw (created by alice) prevents scheduling",
        contains=(
            "Request gpu of claim team/d needs 1 device, and 1 is available, but no node has"
            " everything that is requested: 1 is tainted.",
        ),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoSchedule",
    ),
    "only one of two claims must tolerate": alone(
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        claim("c", request(tolerations=[TOLERATES_FW])),
        claim("d"),
        pod("p", "c", "d"),
        because=("DeviceTaintRule/fw",),
        helps="from rule fw in request gpu of claim team/d, or have the taint removed.",
    ),
    "two claims, and one device is in use": alone(
        "DevicesInUse",
        *PLAIN,
        claim("busy", holds=("n1/gpu-0",), pods=("q",)),
        pod("q", "busy", on="n1"),
        claim("c"),
        claim("d"),
        pod("p", "c", "d"),
        first="claim team/busy uses devices that it could use",
        because=("ResourceClaim/team/busy",),
        helps="Wait until claim team/busy",
    ),
    "a toleration of another effect does not help": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", "NoExecute"),
        asks=request(tolerations=[TOLERATES_FW]),
        contains=(
            "Request gpu tolerates example.com/fw:NoSchedule, which has another effect than"
            " example.com/fw:NoExecute.",
        ),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoExecute",
    ),
    "all devices are wanted, and one is tainted": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", select={"device": "gpu-1"}),
        asks=request(**ALL),
        contains=(
            "Request gpu of claim team/c needs all devices that match, and 1 is available: 1"
            " is tainted.",
        ),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoSchedule",
    ),
    "an extended resource cannot tolerate": alone(
        "DevicesTainted",
        node(),
        class_(extendedResourceName="example.com/gpu"),
        TWO,
        rule("fw"),
        pod(
            containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}],
        ),
        contains=("2 devices have taint example.com/fw:NoSchedule from rule fw",),
        because=("DeviceTaintRule/fw",),
        helps="Extended resources cannot tolerate taints",
    ),
    "an extended resource, and more of it than any node has": alone(
        "NodesTooSmall",
        node(),
        class_(extendedResourceName="example.com/gpu"),
        TWO,
        pod(
            containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "3"}}}],
        ),
        first="resource example.com/gpu needs 3 devices on one node, and no node has more than 2.",
        contains=(
            "Resource example.com/gpu needs 3 devices, and no node has as many: n1 has the"
            " most, 2.",
        ),
        helps="Request at most 2 devices as example.com/gpu.",
    ),
    "an extended resource, and others have it": alone(
        "DevicesInUse",
        node(),
        class_(extendedResourceName="example.com/gpu"),
        TWO,
        *BUSY,
        pod(
            containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}],
        ),
        first="claim team/busy uses devices that it could use",
        contains=("Resource example.com/gpu needs 1 device, and none is available: 2 are in use",),
        because=("ResourceClaim/team/busy",),
        helps="Wait until claim team/busy (2 devices, used by pod team/q) is deallocated.",
    ),
    "several holders must give way": waiting(
        "DevicesInUse",
        *PLAIN,
        claim("one", holds=("n1/gpu-0",), pods=("q",)),
        claim("two", holds=("n1/gpu-1",), pods=("r",)),
        asks=request(count=2),
        because=("ResourceClaim/team/one", "ResourceClaim/team/two"),
        helps="Wait until claims team/one (1 device) and team/two (1 device) are deallocated",
    ),
    "others use them": waiting(
        "DevicesInUse",
        *PLAIN,
        *BUSY,
        first="claim team/busy uses devices that it could use",
        contains=("none is available: 2 are in use by team/busy (2)",),
        because=("ResourceClaim/team/busy",),
        helps="Wait until claim team/busy (2 devices, used by pod team/q) is deallocated."
        " The pod would then be scheduled to node n1.",
    ),
    "one is in use and the other is tainted": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        claim("busy", holds=("n1/gpu-1",), pods=("q",)),
        pod("q", "busy", on="n1"),
        asks=request(count=2),
        because=("DeviceTaintRule/fw", "ResourceClaim/team/busy"),
        helps="Tolerate example.com/fw:NoSchedule from rule fw in request gpu, or have the"
        " taint removed."
        " Also wait until claim team/busy (1 device, used by pod team/q)",
    ),
    "more are wanted than any node has": waiting(
        "NodesTooSmall",
        *PLAIN,
        node("n2"),
        slice_(device("gpu-0"), on="n2"),
        rule("fw", select={"pool": "n1"}),
        *BUSY,
        asks=request(count=3),
        first="request gpu needs 3 devices on one node, and no node has more than 2.",
        contains=(
            "Request gpu of claim team/c needs 3 devices, and no node has as many: n1 has the"
            " most, 2.",
        ),
        helps="Request at most 2 devices in request gpu of claim team/c.",
    ),
    "taints there, but waiting is what helps": waiting(
        "DevicesInUse",
        *PLAIN,
        node("n2"),
        slice_(device("gpu-0"), on="n2"),
        rule("fw", select={"pool": "n2"}),
        *BUSY,
        asks=request(count=2),
        because=("DeviceTaintRule/fw", "ResourceClaim/team/busy"),
        helps="Wait until claim team/busy",
    ),
    "there are no devices": waiting(
        "NoDevices",
        node(),
        class_(),
        first="no driver publishes a device of class gpus for it.",
        contains=(
            "Request gpu of claim team/c needs 1 device of class gpus, and no node has any.",
        ),
        helps="publishes devices of class gpus",
    ),
    "devices there are, but not here": waiting(
        "NoDevices",
        node(),
        class_(),
        slice_(device("gpu-0"), on="n2"),
        contains=("1 device is published, but for nodes that do not exist, or in pools that are",),
        helps="publishes devices of class gpus",
    ),
    "the pool belongs to another node": waiting(
        "NoDevices",
        node(),
        class_(),
        in_pool("rack", slice_(device("gpu-0"), device("gpu-1"))),
        in_pool("rack", slice_(device("gpu-9"), on="n2", name="older")),
        contains=("1 device is published, but for nodes that do not exist, or in pools that are",),
    ),
    "no device is of the class": waiting(
        "SelectorsExclude",
        node(),
        class_("gpus", 'device.driver == "other.example.com"'),
        TWO,
        first="no device is of class gpus.",
        contains=("2 are not of class gpus",),
        helps="Change the selector that excludes most devices: `device.driver =="
        ' "other.example.com"`.',
    ),
    "a selector of the request refuses all": waiting(
        "SelectorsExclude",
        *PLAIN,
        asks=request(selectors=[{"cel": {"expression": 'device.driver == "x"'}}]),
        first="no device matches the selectors of request gpu.",
        contains=(
            "Request gpu of claim team/c needs 1 device, and none is available: 2 are not"
            ' selected by selector `device.driver == "x"`.',
        ),
        helps="Change the selector",
    ),
    "a selector fails": waiting(
        "SchedulerError",
        *PLAIN,
        asks=request(
            selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].size > 3'}}]
        ),
        first="): claim team/c: selector #0 on device gpu.example.com/n1/gpu-0: CEL runtime error",
        helps="Guard the attribute with has() in that selector",
    ),
    "a selector does not compile": waiting(
        "SchedulerError",
        *PLAIN,
        asks=request(selectors=[{"cel": {"expression": "device.nope"}}]),
        first="): claim team/c: selector #0: CEL compile error",
        helps="Correct the expression of that selector.",
    ),
    "a selector of the class fails": waiting(
        "SchedulerError",
        node(),
        class_("gpus", f'device.attributes["{DRIVER}"].size > 3'),
        TWO,
        first="): class gpus: selector #0 on device gpu.example.com/n1/gpu-0: CEL runtime error",
        helps="Guard the attribute with has() in that selector",
    ),
    "a selector would fail if the search came to it": alone(
        "SelectorsFail",
        *PLAIN,
        class_("big", 'device.driver == "big"'),
        claim(
            "c",
            request("a", cls="big"),
            request(
                "b", selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].size > 3'}}]
            ),
        ),
        pod("p", "c"),
        first="a selector of request b fails.",
        contains=(
            "Request b of claim team/c needs 1 device, and none is available: 2 are not"
            " evaluated because a selector fails.",
            "2 are not of class big",
        ),
        helps="Guard optional attributes with has() in the selectors",
    ),
    "more devices than a claim may have": waiting(
        "SchedulerError",
        node(),
        class_(),
        slice_(*(device(f"gpu-{index}") for index in range(40))),
        asks=request(count=33),
        first="number of requested devices 33 exceeds the claim limit of 32",
        helps="spread them over several claims",
    ),
    "the devices are for other nodes, one by one": waiting(
        "DevicesElsewhere",
        node(),
        node("n2", cordoned=True),
        class_(),
        slice_(device("gpu-0", nodeName="n2"), on="", allNodes=None, perDeviceNodeSelection=True),
        first="the devices that it could use are on nodes that it cannot be scheduled to.",
        helps="Uncordon node n2 (kubectl uncordon n2). The pod would then be scheduled to node n2.",
    ),
    "the devices are on nodes that refuse the pod": waiting(
        "DevicesElsewhere",
        node("n1", cordoned=True),
        node("n2"),
        class_(),
        TWO,
        contains=(
            "Request gpu of claim team/c needs 1 device, and none is available: 2 are for nodes"
            " that the pod cannot be scheduled to.",
            "1 node could not run the pod anyway: node(s) were unschedulable.",
        ),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then be scheduled to node n1.",
    ),
    "a node lacks two other things": waiting(
        "DevicesTainted",
        *PLAIN,
        node("n2") | {"status": {"allocatable": {"pods": "10", "cpu": "1", "memory": "1Gi"}}},
        rule("fw"),
        takes={
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}]
        },
        contains=(
            "1 node could not run the pod anyway: Insufficient cpu and Insufficient memory.",
        ),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate example.com/fw:NoSchedule from rule fw",
    ),
    "too little capacity": waiting(
        "CapacityTooSmall",
        node(),
        class_(),
        slice_(device("gpu-0", capacity={"memory": "8Gi"})),
        asks=request(capacity={"requests": {"memory": "80Gi"}}),
        contains=("1 is too small in capacity",),
        helps="Request less capacity in request gpu: no free device has as much.",
    ),
    "one device is too small, the other in use and tainted": waiting(
        "DevicesInUse",
        node(),
        class_(),
        slice_(
            device("gpu-0", capacity={"memory": "8Gi"}),
            device("gpu-1", capacity={"memory": "2Gi"}),
        ),
        rule("fw", select={"device": "gpu-0"}),
        claim("busy", holds=("n1/gpu-0",), pods=("q",)),
        pod("q", "busy", on="n1"),
        asks=request(capacity={"requests": {"memory": "4Gi"}}),
        first="claim team/busy uses devices that it could use.",
        because=("ResourceClaim/team/busy",),
        helps="Tolerate example.com/fw:NoSchedule from rule fw in request gpu, or have the"
        " taint removed. Also wait until claim team/busy (1 device, used by pod team/q)"
        " is deallocated. The pod would then be scheduled to node n1.",
    ),
    "others have the rest of a shared device": waiting(
        "DevicesInUse",
        node(),
        class_(),
        slice_(device("gpu-0", capacity={"memory": "8Gi"}, allowMultipleAllocations=True)),
        sharing("6Gi", claim("busy", holds=("n1/gpu-0",), pods=("q",))),
        pod("q", "busy", on="n1"),
        asks=request(capacity={"requests": {"memory": "4Gi"}}),
        first="claim team/busy uses devices that it could use",
        contains=(
            "Request gpu of claim team/c needs 1 device, and none is available: 1 is too"
            " small in capacity, in part because of shares of team/busy (1).",
        ),
        because=("ResourceClaim/team/busy",),
        helps="Wait until claim team/busy (1 device, used by pod team/q) is deallocated",
    ),
    "counters are used up": waiting(
        "CountersUsedUp",
        node(),
        class_(),
        slice_(
            name="counters",
            count=2,
            sharedCounters=[{"name": "gpu", "counters": {"slots": {"value": "1"}}}],
        ),
        slice_(
            *(
                device(
                    name,
                    consumesCounters=[{"counterSet": "gpu", "counters": {"slots": {"value": "1"}}}],
                )
                for name in ("half-0", "half-1")
            ),
            count=2,
        ),
        claim("busy", holds=("n1/half-0",), pods=("q",)),
        pod("q", "busy", on="n1"),
        contains=("1 is blocked because shared counters are used up",),
        because=("ResourceClaim/team/busy",),
        helps="team/busy",
    ),
    "a user of another kind uses up the counters": waiting(
        "CountersUsedUp",
        node(),
        class_("gpus", "device.attributes['gpu.example.com'].size == 'half'"),
        slice_(
            name="counters",
            count=2,
            sharedCounters=[{"name": "gpu", "counters": {"slots": {"value": "2"}}}],
        ),
        slice_(
            *(
                device(
                    name,
                    attributes={"size": size},
                    consumesCounters=[
                        {"counterSet": "gpu", "counters": {"slots": {"value": slots}}}
                    ],
                )
                for name, size, slots in (("whole", "whole", "2"), ("half", "half", "1"))
            ),
            count=2,
        ),
        claim("busy", holds=("n1/whole",), pods=("q",)),
        pod("q", "busy", on="n1"),
        helps="Wait until claim team/busy (used by pod team/q) is deallocated.",
    ),
    "a pool is still being written": waiting(
        "PoolsUnusable",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        first="the driver of pool gpu.example.com/n1 is still publishing it.",
        contains=("Pools that their driver is still publishing are ignored: gpu.example.com/n1.",),
        helps="Wait until the driver has published all of pool gpu.example.com/n1; check that"
        " it is running.",
    ),
    "a pool draws on counters that are not there": waiting(
        "PoolsUnusable",
        node(),
        class_(),
        slice_(
            device(
                "gpu-0",
                consumesCounters=[{"counterSet": "x", "counters": {"slots": {"value": "1"}}}],
            )
        ),
        first="pool gpu.example.com/n1 is invalid.",
        contains=(
            "Pool gpu.example.com/n1 is ignored because it is invalid: counter set x not found.",
        ),
        helps="has to publish it without contradictions",
    ),
    "all of a pool that contradicts itself": waiting(
        "SchedulerError",
        node(),
        class_(),
        slice_(device("gpu-0"), name="a", count=2),
        slice_(device("gpu-0"), name="b", count=2),
        asks=request(**ALL),
        first="asks for all devices, but resource pool gpu.example.com/n1 is currently invalid",
        helps="publish the pool without contradictions",
    ),
    "all, and a constraint against it": alone(
        "SchedulerError",
        *PLAIN,
        claim("c", request(**ALL), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
        pod("p", "c"),
        first="cannot add device gpu.example.com/n1/gpu-0 because a claim constraint would not be",
        helps="Relax the constraint, or request a number of devices instead of all.",
    ),
    "devices that must differ do not": alone(
        "ConstraintUnmet",
        node(),
        class_(),
        slice_(
            device("gpu-0", attributes={"numa": "0"}), device("gpu-1", attributes={"numa": "0"})
        ),
        claim("c", request(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}]),
        pod("p", "c"),
        first=f"no node has devices that meet constraint distinctAttribute {DRIVER}/numa together",
        helps="Relax the constraint",
    ),
    "devices lack the attribute of a constraint": alone(
        "ConstraintUnmet",
        *PLAIN,
        claim("c", request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
        pod("p", "c"),
        contains=(
            "Request gpu of claim team/c needs 2 devices, and none is available: 2 are"
            " excluded by constraint matchAttribute gpu.example.com/numa.",
        ),
        helps="Relax the constraint",
    ),
    "a pool contradicts itself": waiting(
        "PoolsUnusable",
        node(),
        class_(),
        slice_(device("gpu-0"), name="a", count=2),
        slice_(device("gpu-0"), name="b", count=2),
        contains=(
            "Pool gpu.example.com/n1 is ignored because it is invalid: duplicate device name"
            " gpu-0.",
        ),
    ),
    "all of an incomplete pool": waiting(
        "SchedulerError",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        asks=request(**ALL),
        contains=("asks for all devices, but resource pool gpu.example.com/n1 is currently being",),
        helps="Wait until the driver has published the whole pool.",
    ),
    "more devices than a claim can hold": waiting(
        "SchedulerError",
        *PLAIN,
        asks=request(count=33),
        first="number of requested devices 33 exceeds the claim limit of 32",
        helps="Request fewer devices, or spread them over several claims.",
    ),
    "a mode that is not known": waiting(
        "SchedulerError",
        *PLAIN,
        asks=request(allocationMode="Half"),
        first="claim team/c, request gpu: unsupported count mode Half",
        helps="Correct what the error names.",
    ),
    "a constraint cannot be met": alone(
        "ConstraintUnmet",
        node(),
        class_(),
        slice_(
            device("gpu-0", attributes={"numa": "0"}), device("gpu-1", attributes={"numa": "1"})
        ),
        claim("c", request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
        pod("p", "c"),
        contains=(
            "Request gpu of claim team/c needs 2 devices, and 1 is available: 1 is excluded"
            " by constraint matchAttribute gpu.example.com/numa.",
        ),
        helps="Relax the constraint",
    ),
    "others have them, and they would not do": alone(
        "DevicesInUse",
        *PLAIN,
        *BUSY,
        claim("c", request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
        pod("p", "c"),
        first="claim team/busy uses devices that it could use",
        contains=(
            "Even if its devices were free and tolerated, node n1 would not fit: no node has"
            " devices that meet constraint matchAttribute gpu.example.com/numa together.",
        ),
        because=("ResourceClaim/team/busy",),
        helps="Relax the constraint",
    ),
    "each request fits, but not both": alone(
        "NotTogether",
        *PLAIN,
        claim("c", request("a", count=2), request("b", count=1)),
        pod("p", "c"),
        contains=("no node has devices for all of its requests together",),
        helps="for all of them together",
    ),
    "every alternative is refused": alone(
        "DevicesTainted",
        *PLAIN,
        class_("big", 'device.driver == "big"'),
        rule("fw"),
        claim(
            "c",
            {
                "name": "gpu",
                "firstAvailable": [
                    {"name": "big", "deviceClassName": "big", "count": 1},
                    {"name": "any", "deviceClassName": "gpus", "count": 1},
                ],
            },
        ),
        pod("p", "c"),
        contains=("Request gpu/big of claim team/c", "Request gpu/any of claim team/c"),
        because=("DeviceTaintRule/fw",),
        helps="in request gpu/any",
    ),
}


SITUATIONS = DEVICES


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()


def test_advice_of_trials_is_true() -> None:
    tainted = (*PLAIN, rule("fw"), pod("p", "c"))
    before = ask("pod", "p", *tainted, claim("c"))
    then = ask("pod", "p", *tainted, claim("c", request(tolerations=[TOLERATES_FW])))

    assert before.cause == "DevicesTainted"
    assert then.cause == "NotScheduledYet"
    assert "node n1 now" in then.summary[0]


def test_numbers_stand_in_tables() -> None:
    result = ask("pod", "p", *PLAIN, rule("fw"), claim("c"), pod("p", "c"))

    assert [detail.as_json() for detail in result.details] == [
        {
            "title": "Requests",
            "rows": [
                {
                    "claim": "team/c",
                    "request": "gpu",
                    "class": "gpus",
                    "count": "1",
                    "available": "0",
                    "refused": "taint 2",
                }
            ],
        },
        {
            "title": "Taints that are not tolerated",
            "rows": [
                {
                    "taint": "example.com/fw:NoSchedule",
                    "origin": "DeviceTaintRule/fw",
                    "devices": "2",
                }
            ],
        },
    ]
