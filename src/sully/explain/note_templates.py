"""The text of each note in explanations, in the notation of templates.py."""

from __future__ import annotations

from typing import Final

TABLE: Final = """
Source: {label}[ (created by {by})| (created with {program})| (driver {driver})]
TaintFact: taint {taint} from {source}[, added {added}][, reason {why:quoted}][, data {data}][,
    until {source.until}][, deleted {source.deleted}]
DeviceHasTaint: Device {device} has {taint}.
DeviceHadTaint: Device {device} had {taint}.
ItHasTaint: It has {taint}[{paused:?}; eviction by it is paused].
ClaimDeviceTaint: Device {device} has {taint}; [{paused:?}eviction by it is paused|no pod is
    evicted because of it].
MoreTaintsEvict: {count:more taint} {count:has/have} the same effect.
PreviousEvictions: Before it, [{several:?}{count} pods [of {owner}|named {pod}] were evicted, the
    last|pod {pod}[ of {owner}] was evicted] at {at} because of <sources>.
EvictionLoop: {evicted:pod} of {owner} {evicted:was/were} evicted in the last {span}: they are
    recreated on tainted devices and evicted again. {why}
LoopRemedy: {text}
PodInLoop: {evicted:pod} of {owner} were evicted in the last {span}: they are recreated on tainted
    devices and evicted again[ because of {sources:2}].[ 'sully explain rule {rule}' shows what
    would help.]
StopEviction: It is not evicted if [{removals:all} in time|the taint is removed in time by its
    source][{pausable:?}; pausing {rules:the rule/them} postpones the eviction].
RulesDeleted: {rules:rule/rules} {rules} {rules:is/are} deleted
PolicyRulesDeleted: policy {policy} is set to DryRun or deleted, and then {rules:rule/rules} {rules}
    {rules:is/are} deleted,
MaintenanceCancelled: maintenance {maintenance} is cancelled (sully maintenance cancel
    {maintenance})
StopRule: delete the rule
StopPolicy: set policy {policy} to DryRun or delete it, and then delete the rule, which the policy
    would create again
StopMaintenance: sully maintenance cancel {maintenance}
POOL_INCOMPLETE: Wait until the driver has published the whole pool.
POOL_INVALID: The driver has to publish the pool without contradictions.
TOO_MANY_DEVICES: Request fewer devices, or spread them over several claims.
CONSTRAINT: Relax the constraint, or request a number of devices instead of all.
CEL_RUNTIME: Guard the attribute with has() in that selector.
CEL_COMPILE: Correct the expression of that selector.
Candidate/Claims: {message}
Candidate/Node: node {node} does not fit: {messages:comma}
Candidate/Unsupported: node {node} does not fit: {field} is not supported
Candidate/TAINT: it does not tolerate {taints}
Candidate/IN_USE: the device is in use by [{holders}|another claim]
Candidate/REQUEST_SELECTOR: a selector of the request does not match the device
Candidate/SELECTOR_ERROR: a selector fails for the device
Candidate/CAPACITY: the device has too little capacity left
Candidate/COUNTERS: the counters that the device shares are used up
Candidate/CONSTRAINT: a constraint of the claim rejects the device
Mismatch: {part} {text}[, which fails: {error}]
Nodes/Cordoned: {names:is/are} cordoned
  > Uncordon {names:node/one of the nodes} {names:or} (kubectl uncordon {first}).
Nodes/Untolerated: {names:has/have} taints that it does not tolerate
  > Tolerate the taint of the nodes in spec.tolerations of the pod.
Nodes/NotSelected: {names:does/do} not match its node selector or affinity
  > Change the node selector or affinity of the pod, or label a node.
Nodes/TooManyPods: {names:has/have} the maximum number of pods
  > Wait until other pods terminate, or add a node.
Nodes/Insufficient: {names:has/have} insufficient {resource}
  > Request less {resource}, or add a node that has as much.
Nodes/PortsInUse: {names:does/do} not have the host ports free that it requests
  > Wait until the pods with these ports are gone, or use other host ports.
Nodes/VolumesElsewhere: {names:does/do} not have access to its volumes
  > Use a volume that other nodes can use, or add a node where the volume is.
Nodes/NotSpread: {names:does/do} not satisfy its topology spread constraints
  > Add nodes to the domains with fewer pods, or change spec.topologySpreadConstraints of the pod.
Nodes/NotNear: {names:does/do} not satisfy its pod affinity
  > Run the pods first that it has affinity to, or change the pod affinity of the pod.
Nodes/NotApart: {names:does/do} not satisfy pod anti-affinity
  > Add a node, or change the anti-affinity of the pod or of the pods that run there.
NodeMessage: {names:node} ({names:3}): {message}.
SchedulerReports: {scheduler} reports: {message:sentence}
WouldFit: As far as nodes and devices are concerned, it would fit on node {node}.
WouldNotFit: As far as nodes and devices are concerned: {message:sentence}
NotEvaluated: What else decides is not known: {what:2}.
MayPreempt: The scheduler may preempt {pods:2} on node {node} for it.
NamedNodes: Only node {names:or} {names:counts/count} for it: its affinity names {names:it/them}[,
    as of every pod of {owner}].
OnOtherNodes: {devices:device} {devices:is/are} published, but not for node {names:or}.
OtherRejections: {nodes:node} could not run the pod anyway: {messages:2}.
ExceedsNodes: It requests {requested} {resource}, and [node {named:or} has [no more than
    {most}|none]|no node has [more than {most}|any]].
  > [{named:?}[Request at most {most} {resource}.|Remove the request for {resource}.]|Request at
    most {most} {resource}, or add a node that has more.|Add a node that has {resource}, or remove
    the request.]
NoNodeHasAll: Request less, or add a node that has all of it.
NotEnoughOnNode: That would not be enough on node {node}: {shortage}.
StillNotEnough: Even if its devices were free and tolerated, node {node} would not fit: {shortage}.
NodesTooSmall: [resource {resource}|request {request}] needs {wanted} devices on one node, and no
    node has more than {most}
LargeRequest: <request> needs {wanted:device}, and no node has as many: {node} has the most,
    {most}.
  > Request at most {most:device} [as {resource}|in request {request} of claim {claim}].
DevicesTainted: {sources:2} {sources:prevents/prevent} scheduling on devices that it could use
DevicesInUse: [{claims:claim/claims} {claims:2} {claims:uses/use} devices that it could use|the
    devices that it could use are in use]
ConstraintUnmet: no node has devices that meet [constraint {constraints:2}|the constraints of its
    claim] together
NoDevices: no driver publishes a device[ of class {classes:or}] for it
SelectorsExclude: [no device matches the selectors of request {requests:2}|no device is of class
    {classes:or}|no device matches]
SelectorsFail: a selector of request {requests:2} fails
CapacityTooSmall: no device has the capacity that request {requests:2} needs
PoolsUnusable: [pool {invalid:2} is invalid|the driver of pool {incomplete:2} is still publishing
    it]
NotTogether: no node has devices for all of its requests together
CountersUsedUp: the counters that the devices share are used up
ClaimElsewhere: no node has the devices that it needs
ClaimTainted: no node has the devices that it needs
DevicesElsewhere: the devices that it could use are on nodes that it cannot be scheduled to
RequestShortage: <request> needs [{nothing:?}[{wanted:device}|all devices][ of class
    {device_class}], and no node has any|[{wanted:device}|all devices that match], and [{available}
    {available:is/are}|none is] available[{apart:?}, but no node has everything that is
    requested][: {refused:comma}]].
Refused/taint: {count} {count:is/are} tainted
Refused/inUse: {count} {count:is/are} in use[ by {holders:3}]
Refused/classSelector: {count} {count:is/are} not of [class {device_class}|the requested class]
Refused/requestSelector: {count} {count:is/are} not selected by [selector {selector:code}|selector
    {index} of the request|the selectors of the request]
Refused/selectorError: {count} {count:is/are} not evaluated because a selector fails
Refused/constraint: {count} {count:is/are} excluded by [constraint {constraints:2}|constraints of
    the claim]
Refused/node: {count} {count:is/are} for nodes that the pod cannot be scheduled to
Refused/capacity: {count} {count:is/are} too small in capacity[, in part because of shares of
    {holders:3}]
Refused/counters: {count} {count:is/are} blocked because shared counters are used up
MoreRequests: {count:more request} cannot be satisfied.
TaintedDevices: {devices:device} {devices:has/have} {taint}.
MoreTaints: {count:more taint} {count:prevents/prevent} scheduling.
TolerationMismatch: Request {request} tolerates {toleration}, which [has another {differs} than
    {taint}|has expired].
IncompletePools: Pools that their driver is still publishing are ignored: {pools}.
  > Wait until the driver has published all of pool {pools}; check that it is running.
InvalidPool: Pool {pool} is ignored because it is invalid: {error}.
InvalidPools:
  > The driver of pool {pools} has to publish it without contradictions.
OutOfReach: {devices:device} {devices:is/are} published, but for nodes that do not exist, or in
    pools that are being replaced.
PodsAhead: {pods:other pod} {pods:needs such devices and is/need such devices and are} scheduled
    before it: {pods:3}.
RequestsTogether: Each request could be satisfied, but no node has the devices for all of them
    together.
Advice/constraint: Relax the constraint [{constraints:2}|of the claim], which leaves too few
    devices.
Advice/counters: Request a smaller partition, or wait until shared counters are released.
Advice/capacity: Request less capacity<in>: no free device has as much.
Advice/extended: Extended resources cannot tolerate taints: use a claim, or have the taint removed.
Advice/fewer: Request fewer devices<in>, or add devices.
Advice/add: Add devices that can satisfy [{resource}|request {request}].
Advice/node: Let the pod run on the nodes that have such devices: see its node selector and
    tolerations.
Advice/selectorError: Guard optional attributes with has() in the selectors: one of them fails.
Advice/selector: Change the selector that excludes most devices: {selector:code}.
Advice/driver: Start a driver that publishes devices of [class {device_class}|the requested class].
ScheduledAfter: {steps:steps}. The pod would then be scheduled to node {node}.
MayHelp: It may help to {step}[{partly:?}, as far as needed].
Uncordon: uncordon node {node} (kubectl uncordon {node})
TolerateNode: tolerate {taints:all} of node {node} in spec.tolerations of the pod
MatchNode: change the node selector or affinity of the pod, or label node {node}, so that they
    match
RemovePods: wait until {pods:pod/pods} {pods:8} {pods:is/are} gone from node {node}
TaintOf: {taint} from {source}
RequestsOf: request {requests:all}[ of claim {claim}]
TolerateDevices: tolerate {taints:all}[{expired:?} without tolerationSeconds][ in
    {requests:all}][{removable:?}, or wait until {until}|{removable:?}, or have {taints:the
    taint/the taints} removed]
ClaimUse: {claim}[ ({devices:device}, used by pod {pods:2})| ({devices:device})| (used by pod
    {pods:2})]
Deallocate: wait until {claims:claim/claims} {claims:8} {claims:is/are} deallocated
ImmutableClaims: The spec of a claim is immutable: to add tolerations, [update
    {templates:template/templates} {templates:8} and recreate the pod][{templates:?}{claims:?} and
    ][recreate {claims:claim/claims} {claims:8}].
PodUser: pod {pods:2}
ClaimUser: claim {claim}
NotAllocatable: Even when it is free, it cannot be allocated ({text}).
AdminAccess: Claim {claims} {claims:has/have} admin access to it, which does not prevent
    scheduling.
UnpublishedTaint: If it were published, it would have {taint}.
PoolTaint: Its pool also has a taint for {device}, which is not a published device, so no device is
    affected: {taint}.
Patched: {names} {names:is/are} set by {patch}, not by the driver.
RemovedByPatch: {names} {names:is/are} removed by {patch}.
InactiveTaints: The taints that the driver publishes for {devices:2} have no effect: {why}.
    {remedy:sentence}
InactiveRules: {rules:Rule/Rules} {rules:3} {rules:selects/select} [{devices:2}|it] and
    {rules:has/have} no effect: {why}. {remedy:sentence}
InactivePatches: {patches:Patch/Patches} {patches:3} {patches:selects/select} [{devices:2}|it] and
    [{evicts:?}{patches:does/do} only evict pods|{patches:has/have} no effect]: {why}.
    {remedy:sentence}
StaleStatus: Its status is stale, nothing updates it: {condition}[ since {at}][, {message:quoted}].
PartlyInactive: {why:sentence}
RemoveTaints: To remove the taint: {steps:semicolon}
DeleteRule: delete rule {rule}
UncordonDevice: sully uncordon device {device}
SuppressedTaint: Its driver published taint {taint} with the effect {effect}, which {by}
    suppresses[ until {until}].
PolicyState: Policy {policy} ({phase}): {message}[; next change {at}].
MaintenanceState: Maintenance {maintenance} ({phase}): {message}[; next change {at}].
EndMaintenance: wait for maintenance {maintenance}, or end it with: sully maintenance cancel
    {maintenance}
RepairDevice: repair the device: policy {policy} removes the taint when the fault is over
ProveDevice: repair the device: policy {policy} removes the taint when the fault is over and its Job
    has succeeded
ClearDevice: repair the device, then run: sully policies clear {policy} {device}
ClearTaint: have {source} remove its taint
UndecidedDevices: It cannot be determined whether it selects some devices: {device}: {error}[ (and
    {more} more)].
NoSuchDriver: [no driver {driver}|no driver] publishes devices
NoSuchPool: there is no pool {pool}
NoSuchDevice: there is no device {device} there
NoMatchingDevice: no device matches {criteria:all}
BlockedPods: It prevents scheduling of {pods:Pending pod}: {pods}.
EvictedPods: {pods:pod} will be evicted because of its taints: {pods}.
Expires: It [{overdue:?}should have expired|expires] at {at}.
NotRecorded: How many pods were evicted so far is not recorded here: the controller that evicts
    counts only since it was started, and reports up to ten seconds late. Sully's own keeps records
    (sully install --evictor sully).
PolicyProblem: {message:sentence}
Overrides: patch {patch} ({values})
ClusterTaint: taint {taint}[, added {added}][ by {by}| with {program}][{by:?}{condition:?} because
    its condition {condition}[ is {status}| was never reported]][, reason {why:quoted}][, until
    {until}]
ClusterHasTaint: It has {taint}.
TaintOnCluster: On {cluster}: {taint}.
ClusterCondition: [On {cluster}: |Its ]{type} is {status}[ since {at}]: {message:sentence}
SelectedBy: {placements:placement} {placements:selects/select} it: {placements}.
RejectedBy: {placements:placement} {placements:does/do} not select it because of a taint[, {losing}
    of them had it]: {placements}.
TolerationEnds: Placement {placement} loses it at {at}, when the toleration ends.
ClockSkew: Its clock is out of sync[ since {at}]: its agent is ignored.
Verdict: {of}: {text}.
ClustersTaint: taint {taint}[, added by {by},|, added with {program},] prevents selection of
    {clusters:cluster}
ClustersUnmatched: its predicates do not match {clusters:cluster}
NoMoreClusters: there are no more
Out/taint: <clusters> not selected: {text}.
Out/predicate: <clusters> not matched: {mismatches:2}.
Out/rank: <clusters> left out because others score higher.
Out/prefer: <clusters> left out because of a PreferNoSelect taint.
ToleratedUntil: {cluster} is tolerated until {at}.
DecisionsDiffer: Its decisions do not reflect this yet; they name [{clusters}|none].
StatusWarning: {message:sentence}
SelectedAfter: {steps:steps}. [Cluster {cluster} would then be selected|The placement would then
    get {clusters:cluster}].
TolerateCluster: tolerate {taints:all}, or have {taints:the taint/the taints} removed[{health:?},
    which the hub does when the cluster is available again]
Match/labels: widen the predicates, or label [cluster {cluster} so that it matches|clusters so that
    they match]
Match/claims: widen the predicates, or have [cluster {cluster}|clusters] report such claims
Match/expression: widen the predicates, or see that [cluster {cluster} has|clusters have] what the
    expression requires
RaiseNumber: request {clusters:cluster}
LowerNumber: [Request at most {clusters:cluster}|Request others], or add some to the sets.
AddToSet: Add cluster {cluster} to set {sets}.
ForPlacement: For placement {placement}: {remedy:lower}
BlocksPods: it prevents scheduling of {pods:pod} on devices: {pods}
HasEvicted: it evicted {pods:pod}, the last, {last}, at {at}
EvictedFrom: {pods:pod} {pods:was/were} evicted from it, the last, {last}, at {at}
HeldByClaim: it is allocated to claim {claim}[ for pod {pods:2}]
HeldByPlacements: {placements:placement} {placements:selects/select} it: {placements}
"""
