"""The table: cause → state → sentences → remedies, by kind; and the text of each note.

Every text of `sully explain` that is ours is in this file; messages of Kubernetes and of Open
Cluster Management come in as fields and stay as they are. A row has the word for the cause, the
state and the first sentence. Below it are further sentences, fields with notes after `*`, and the
remedies after `>`; a line that is indented more continues the one before. render.py has the syntax
of a sentence.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MACROS: Final = {
    "on": "{subject} is on node {node}",
    "pending": "{subject} [has been Pending since {since}|is Pending]",
    "deleting": "{subject} is being deleted[ since {since}]",
    "terminating": "{subject} is being deleted[, until {ends} at the latest|, which should have"
    " ended at {overdue}]",
    "due": "{subject} is due for eviction from node {node}[ since {due}] because of {sources:2}.",
    "sources": "[{sources:2}|a taint that is not recorded]",
    "where": "[ on node {node}|{all_nodes:?} (for all nodes)"
    "|{some_nodes:?} (for the nodes of a selector)]",
    "author": "[, created by {by} at {created}|, created by {by}|, created at {created}]"
    "[, reason {why:quoted}][{by:?},|{created:?},|{why:?},]",
    "selects": "It selects {devices:published device}, {allocated} in use",
    "terminating-pods": "[; {terminating:more pod} {terminating:is/are} terminating]",
    "stop": "To stop: [{pausable:?}sully evictions pause {name}, or ]delete the rule; evicted pods"
    " are not restored.",
    "has": "{subject} has {devices}[, reserved for {users}| and is not reserved for any pod: it"
    " keeps them until a pod has used it].",
    "request": "[Resource {resource}|Request {request} of claim {claim}]",
    "in": "[ as {resource}| in request {request}]",
    "available": "{subject} [has been available since {at}|is available], in {sets:set/sets}"
    " {sets}",
    "requests": "{subject} requests [{number:cluster}|all clusters that fit]",
    "no-cluster": "{subject} gets no cluster[ since {since}]",
    "clusters": "{clusters:cluster} ({clusters:3}) {clusters:is/are}",
    "ask": "Ask an administrator about the rest, or for permission to read {resources}.",
}

_POD: Final = """
Finished (Finished): {subject} has finished ({phase}).
NodeNotFound (Orphaned): <on>, which does not exist: nothing runs it.
  > Delete the pod, or recreate node {node}.
ClaimNotReserved (Running): <on>, but claim {claims} is not reserved for it.
  It was bound without the scheduler; devices are never allocated for such a pod.
  > Create the pod without spec.nodeName.
NoDevicesHeld (Running): <on> and uses no device.
TaintsNotVisible (Running): <on> and uses {devices}. You are not allowed to see whether they are
    tainted, and so whether it will be evicted.
  > Ask an administrator, or for permission to list resourceslices and devicetaintrules.
NotTainted (Running): <on> and uses {devices}, {devices:which is not/none of which is} tainted.
TaintsDoNotEvict (Running): <on> and uses {devices}. It is not evicted: [{tolerated:?}it tolerates
    the taints from {sources:2}|the taints from {sources:2} do not evict pods].
  *taints
EvictionPaused (Running): <on> and is not evicted while eviction by {sources:2} is paused[:
    {why:quoted}].
  *taints
  > It is evicted when the rule is resumed (sully evictions resume {rule}), and is not evicted if
    the rule is deleted.
ToleratedTemporarily (Running): <on> and will be evicted at {until}: until then it tolerates the
    taints from {sources:2}.
  *taints
  > Adding tolerations to its claim does not help: they are read when devices are allocated.
TaintStartsLater (Running): <on> and will be evicted at {until}: then the taints from {sources:2}
    take effect.
  *taints
  > Adding tolerations to its claim does not help: they are read when devices are allocated.
TaintExpiresFirst (Running): <on> and is not evicted: {sources:2} {sources:expires/expire} before
    its toleration.
  *taints
EvictionDue (Evicting): <due> It is evicted as soon as the eviction controller processes it.
  *taints
EvictionRateLimited (Evicting): <due> The rate is {rate:pod} per second, and other pods are evicted
    first.
  *taints
WaitingForDisruptionBudget (Evicting): <due> [{several:?}It cannot be evicted: more than one
    PodDisruptionBudget selects it, {budgets}.|{allowed:?}PodDisruptionBudget {budgets} allows its
    eviction.|It is evicted when PodDisruptionBudget {budgets} allows it, which currently allows no
    disruption.|It is evicted when its PodDisruptionBudgets allow it.]
  *taints
EvictedByTaint (Terminating): <terminating>: it was evicted because of [{sources:2}|a taint on one
    of its devices].
  *taints
  [{sources:!}{taints:!}The taint is not recorded.]
Disrupted (Terminating): <terminating>: {message:sentence}
Deleted (Terminating): <terminating>. No device taint is the reason.
Evicted (Evicted): {subject}[ of {owner}] was evicted[ from node {node}] at {at}
    because of <sources>.[{several:?} It is the last of {count} pods with that name.]
  *taints
  > [{owner:?}Its owner creates a replacement; explain that one if it is Pending.|No controller
    manages it: create it again, with a toleration if it may use such devices.]
OtherScheduler (Pending): <pending>, and only scheduler {scheduler} can schedule it.
  > Run scheduler {scheduler}, or remove spec.schedulerName.
SchedulingGated (Pending): <pending> because of {gates:scheduling gate}: {gates}.
  > The controller that set the gate removes it when the pod may be scheduled.
UnsupportedConstraint (Pending): <pending>: this scheduler does not evaluate {field}.
  > Remove {field}, or use another scheduler for the pod.
ClaimNotCreated (Pending): <pending>: {message}.
  > The claim controller creates it; check that it is running.
TemplateMissing (Pending): <pending>: {message}; there is no ResourceClaimTemplate {template} in
    namespace {namespace}.
  > Create template {template}.
ClaimMissing (Pending): <pending>: {message}.
  > [Create claim {claim} in namespace {namespace}.]
ClaimDeleting (Pending): <pending>: {message}.
  > Wait until it is gone, and create a new one.
ClaimOfOtherPod (Pending): <pending>: {message}.
  > Delete claim {claim}: it has the name that the claim of this pod needs.
ClaimFull (Pending): <pending>: claim {claim} is reserved for {pods} pods, which is the maximum.
  > Wait until one of them is gone, or use another claim.
DevicesFailed (Pending): <pending>: device {device} of claim {claim} cannot be used: its driver
    reports condition {conditions}.
  > The scheduler deallocates the claim and retries; see the status of the claim.
DevicesNotReady (Pending): <pending>: claim {claim} has device {device}, and its driver has not yet
    reported condition {conditions}; the scheduler waits for it until {until}.
  > Check that driver {driver} is running; it reports in status.devices of the claim.
ClassMissing (Pending): <pending>: {message}.
  > Create the class, or name one that exists[: {classes}].
SchedulerError (Pending): <pending>: {message:sentence}
  > [{failure}|Correct what the error names.]
NoNodes (Pending): <pending>, and there is no node.
  > Add a node.
NotScheduledYet (Pending): <pending>[, although it would fit on node {node} now|, and no scheduler
    has processed it].
  > [{node:?}The scheduler has not retried it since; check that it is running.|Check that a
    scheduler is running.]
Unschedulable (Pending): <pending>. The scheduler reports: {message:sentence}
ClaimElsewhere (Pending): <pending>: claim {claim} already has [{devices:2}|its devices], and
    {nodes:node} that could run the pod cannot use {devices:it/them}.
  [{users:!}No pod uses the claim, so the scheduler deallocates it and chooses other devices.]
  > [Wait until {users:2} no longer {users:uses/use} the claim, let the pod run on the node where
    the devices are, or give it a claim of its own.|Check that a scheduler is running.]
ClaimTainted (Pending): <pending>: it would be evicted immediately if it used claim {claim},
    because of {sources:2}.
  Device {device} of the claim has {taints:2}.
  > Use another claim, or have the taint removed.
NodesUnsuitable (Pending): <pending>: [{single:?}the only node {reasons:all}|{same:?}all {nodes}
    nodes {reasons:all}|of {nodes} nodes, {reasons:counted}].
  *notes
InsufficientDevices (Pending): <pending>: {shortage}.
  *notes
NodesTooSmall (Pending): <pending>: {shortage}.
  *notes
"""

_CLAIM: Final = """
StillInUse (Deleting): <deleting>, and remains until {pods} no longer {pods:uses/use} it.
FinalizersPending (Deleting): <deleting>[ and waits for {finalizers}].
PodPending (Pending): {subject} has no devices: they are allocated when pod {pods} is scheduled.
SchedulerBypassed (Pending): {subject} has no devices, although pod {pods} has a node: devices are
    not allocated for a pod that was bound without the scheduler.
  > Create the pod without spec.nodeName.
NoConsumer (Pending): {subject} has no devices because no pod uses it: devices are allocated when a
    pod that uses it is scheduled.[ It was created for pod {owner}.]
PodsToBeEvicted: <has>
  Its pods will be evicted [at {at}|immediately] because of {sources:2}.
  *taints
  > The pods are not evicted if the taint is removed in time; it is too late to add tolerations.
ConsumersGone: <has>
  {gone} {gone:is/are} gone or finished; the claim controller removes the reservation.
TaintsNotVisible: <has>
  You are not allowed to see whether they are tainted, and so whether its pods will be evicted.
  > Ask an administrator.
DeviceUnpublished: <has>
  {unpublished} {unpublished:is/are} no longer published; the allocation stays.
  > Check that the driver of the device is running.
EvictionPaused: <has>
  *taints
TaintsDoNotEvict: <has>
  *taints
InUse: <has>
Unused: <has>
"""

_DEVICE: Final = """
StillAllocated (Unpublished): {subject} is no longer published by any driver, but claim {claims}
    still {claims:has/have} it.
  *taints
  > Check that the driver is running; the allocation ends with its last pod.
NotPublished (Gone): {subject} is no longer published by any driver, and no claim has it; pod {pod}
    was evicted from it at {at} because of <sources>.
  *taints
  > If it should exist, check that its driver is running.
Unusable (Unusable): {subject}<where> cannot be allocated ({text}).
  *taints
  > Its driver has to publish the whole pool, without contradictions.
CountersUsed (Unusable): {subject}<where> cannot be allocated ({text}).
  *taints
  > Wait until devices that draw on the same counters are deallocated.
Free (Free): {subject}<where> is free, and no taint prevents scheduling on it.
  *taints
PreventsScheduling (Tainted): {subject}<where> is not in use: {sources:2}
    {sources:prevents/prevent} scheduling of pods that do not tolerate it.
  *taints
InUse (InUse): {subject}<where> is in use by {users}. It is not tainted.
PodsNotEvicted (InUse): {subject}<where> is in use by {users}, which is not evicted despite
    {sources:2}.
  *taints
PodsTerminating (InUse): {subject}<where> is in use by {users}, which is terminating because of
    {sources:2}.
  *taints
PodsToBeEvicted (InUse): {subject}<where> is in use by [{users}|no pod], which will be evicted [at
    {at}|immediately] because of {sources:2}.
  *taints
NotAllowed (NotVisible): You are not allowed to see {object}[; in namespace {namespace}
    {notes:all}|, and nothing that you may see refers to it].
  > <ask>
"""

_RULE: Final = """
Deleted (Deleting): <deleting>[ and waits for {finalizers}].
NoSelector (Idle): It has no deviceSelector, so it selects no device.
  > Give it a deviceSelector; an empty one selects every device.
SelectorFails (Idle): It selects no device.
  > [{unrecorded:?}Select devices whose slice is gone by driver, pool and device.|Correct the
    expression, or name a class that exists.]
NoDevice (Idle): It selects no device: [{mismatch}|none meets all of its criteria].
  > 'sully devices' lists the devices.
NoEffect (Preview): <selects>, and has no effect.[ With NoExecute: {preview}]
PreventsScheduling (Blocking): <selects>. New pods that do not tolerate it are not scheduled on
    them; no pod is evicted.
PreferNoSchedule (Advising): <selects>. New pods are allocated other devices first, if the feature
    gate is enabled.
UnknownEffect (Idle): <selects>, but the effect {effect} is unknown, so it has no effect.
EvictionPaused (Paused): <selects>, and eviction is paused[: {paused:quoted}]; {pods:pod} would be
    evicted.
  > Resume it with: sully evictions resume {name}
TaintExpiresFirst (Done): <selects>. No pod is evicted: it expires before the tolerations of
    {pods:pod}.
PodsToBeEvicted (Evicting): <selects>. {pods:pod} will be evicted[, {due} of them] immediately[, at
    {rate:pod} per second][{budgets:?}, as PodDisruptionBudgets allow]<terminating-pods>.
  > <stop>
ToleratedTemporarily (Evicting): <selects>. {pods:pod} will be evicted later; the first, {first},
    tolerates it until {at}<terminating-pods>.
  > <stop>
TaintStartsLater (Evicting): <selects>. {pods:pod} will be evicted later; the first, {first}, at
    {at}, when the taint takes effect<terminating-pods>.
  > <stop>
PodsTerminating (Evicting): <selects>. {pods:pod} {pods:is/are} terminating because of it, [until
    {ends} at the latest|which should have ended at {overdue}]; no other pod will be evicted.
Completed (Done): <selects>. [{complete:!}At least ]{evicted:pod} {evicted:was/were} evicted
    because of it, and no other pod will be.
AllPodsTolerate (Done): <selects>, and all pods there tolerate it or no longer use a device.
NoPodsAffected (Done): <selects>: there is no pod to evict.
RuleDeleted (Removed): It was deleted[ by {deleted_by}][ at {at}]. {evicted:pod} {evicted:was/were}
    evicted because of it.
Expired (Removed): It expired[ at {at}]. {evicted:pod} {evicted:was/were} evicted because of it.
Applied (Applied): It selects {devices:published device}, and all of its values apply.
PartlyOverridden (Applied): It selects {devices:published device}, but {values} of its values
    {values:does/do} not apply: other patches take precedence, {winners}.
  > The higher priority wins, then the older patch, then the name.
OtherPatchesFirst (Overridden): It selects {devices:published device}, but none of its values
    applies: other patches take precedence, {winners}.
  > The higher priority wins, then the older patch, then the name.
"""

_CLUSTER: Final = """
Deleted (Deleting): <deleting>.
NoClusterSet (Unassigned): {subject} is in no ManagedClusterSet, so no placement can select it.
  > Label it with cluster.open-cluster-management.io/clusterset, or widen a set.
NotAccepted (Unreachable): {subject} registered, but the hub has not accepted it.
  > Set spec.hubAcceptsClient to true.
AcceptanceFailed (Unreachable): {subject} cannot be accepted by the hub[ since {at}]:
    {message:sentence}
Denied (Unreachable): {subject} was denied by the hub[ since {at}]: {message:sentence}
NeverAvailable (Unreachable): {subject} never reported that it is available: its agent has not
    joined.
Unavailable (Unavailable): {subject} [has not been available since {at}|is not available]:
    {message:sentence}
Unreachable (Unreachable): {subject} [has been unreachable since {at}|is unreachable]:
    {message:sentence}
  > It recovers when its agent updates its status again; renewing its lease is not enough.
NotTainted (Available): <available>.
  *verdicts
TaintsTolerated (Tainted): <available>.
  *verdicts
NoPlacement (Available): <available>, but no placement may use that set.
NotSelected (Available): <available>, but is not selected by {placements:placement/placements}
    {placements:3}.
  *verdicts
TaintNotTolerated (Tainted): <available>, but taint {taint.taint}[, added by {taint.by},] prevents
    selection by {placements:placement/placements} {placements:3}.
"""

_PLACEMENT: Final = """
Deleted (Deleting): <deleting>.
SchedulingDisabled (Disabled): {subject} keeps {clusters:cluster}: the annotation {annotation}
    disables scheduling.
  > Remove the annotation.
ClusterSetInvalid (Blocked): {subject} keeps {clusters:cluster}: nothing is decided while a set is
    invalid.
  {message:sentence}
  > Correct the selector of the set.
NoManagedClusterSetBindings (Empty): <no-cluster>: no existing ManagedClusterSet is bound to
    namespace {namespace}.
  > Create a ManagedClusterSetBinding in {namespace}, named after the set.
NoIntersection (Empty): <no-cluster>: it requests set {cluster_sets}, and only {bound}
    {bound:is/are} bound to namespace {namespace}.
  > Bind the set to {namespace}, or name one that is bound in spec.clusterSets.
AllManagedClusterSetsEmpty (Empty): <no-cluster>: set {sets} has no cluster that is not being
    deleted.
Misconfigured (Misconfigured): {subject} cannot be evaluated[ ({plugin})]: {message:sentence}
  [It keeps {selected:cluster} meanwhile.|It gets no cluster.]
  > Correct what the message names.
NotDecided (Unknown): {subject} was not decided yet.
NoClustersRequested (Empty): {subject} gets no cluster: its numberOfClusters is {number}, not above
    0.
  > Raise numberOfClusters, or remove it for all clusters that fit.
AllDecisionsScheduled (Satisfied): <requests> and gets {selected} of the {considered} in its sets[
    since {since}].
  *notes
Unsatisfied (Unsatisfied): <requests> and gets {selected} of the {considered} in its sets[ since
    {since}]: {why}.
  *notes
HeldByBudget (Satisfied): <requests> and keeps {clusters:cluster}, some of which are selected only
    because of the removal budget of the hub[ since {at}].
  {message:sentence}
  *notes
  > They stay selected if they recover before it is their turn.
NotAllowed (NotVisible): {subject} has {clusters:cluster}[ ({clusters})][ since {at}][:
    {message:sentence}|.]
  You are not allowed to see which clusters exist, and why others are not selected.
  > <ask>
"""

_NOTES: Final = """
Source: {label}[ (created by {by})| (driver {driver})]
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
StopEviction: It is not evicted if [{rules:rule/rules} {rules} {rules:is/are} deleted in time|the
    taint is removed in time by its source][{pausable:?}; pausing {rules:the rule/them} postpones
    the eviction].
POOL_INCOMPLETE: Wait until the driver has published the whole pool.
POOL_INVALID: The driver has to publish the pool without contradictions.
TOO_MANY_DEVICES: Request fewer devices, or spread them over several claims.
CONSTRAINT: Relax the constraint, or request a number of devices instead of all.
CEL_RUNTIME: Guard the attribute with has() in that selector.
CEL_COMPILE: Correct the expression of that selector.
Nodes/Cordoned: {names:is/are} cordoned
  > Uncordon a node (kubectl uncordon).
Nodes/Untolerated: {names:has/have} taints that it does not tolerate
  > Tolerate the taint of the nodes in spec.tolerations of the pod.
Nodes/NotSelected: {names:does/do} not match its node selector or affinity
  > Change the node selector or affinity of the pod, or label a node.
Nodes/TooManyPods: {names:has/have} the maximum number of pods
  > Wait until other pods terminate, or add a node.
Nodes/Insufficient: {names:has/have} insufficient {resource}
  > Request less {resource}, or add a node that has as much.
NodeMessage: {names:node} ({names:3}): {message}.
OtherRejections: {nodes:node} could not run the pod anyway: {messages:2}.
ExceedsNodes: It requests {requested} {resource}, and no node has [more than {most}|any].
  > [Request at most {most} {resource}, or add a node that has more.|Add a node that has
    {resource}, or remove the request.]
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
Patched: {names} {names:is/are} set by {patch}, not by the driver.
RemoveTaints: To remove the taint: {steps:semicolon}.
DeleteRule: delete rule {rule}
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
    counts only since it was started. Sully's own keeps records (sully install --evictor sully).
Overrides: patch {patch} ({values})
ClusterTaint: taint {taint}[, added {added}][ by {by}][{by:?}{condition:?} because its condition
    {condition}[ is {status}| was never reported]]
ClusterHasTaint: It has {taint}.
TaintOnCluster: On {cluster}: {taint}.
ClusterCondition: [On {cluster}: |Its ]{type} is {status}[ since {at}]: {message:sentence}
SelectedBy: {placements:placement} {placements:selects/select} it: {placements}.
RejectedBy: {placements:placement} {placements:does/do} not select it because of a taint[, {losing}
    of them had it]: {placements}.
TolerationEnds: Placement {placement} loses it at {at}, when the toleration ends.
ClockSkew: Its clock is out of sync[ since {at}]: its agent is ignored.
Verdict: {of}: {text}.
ClustersTaint: taint {taint}[, added by {by},] prevents selection of {clusters:cluster}
ClustersUnmatched: its predicates do not match {clusters:cluster}
NoMoreClusters: there are no more
Out/taint: <clusters> not selected: {text}.
Out/predicate: <clusters> not matched: {text}.
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

_MACRO: Final = re.compile(r"<([\w-]+)>")


class Template(NamedTuple):
    """A row of the table; a summary that begins with `*` is a field with notes."""

    state: str
    summary: tuple[str, ...]
    remedies: tuple[str, ...]


def _rows(table: str, lead: str = "") -> dict[str, Template]:
    rows: dict[str, Template] = {}
    # A section or a macro that begins a line follows the one before without a space.
    whole = re.sub(r"\n {4}(?![\[<|])", " ", table).replace("\n    ", "")
    for block in re.split(r"\n(?=\S)", whole.strip()):
        head, _, rest = block.partition(":")
        name, _, state = head.rstrip(")").partition(" (")
        given = (text.strip() for text in (lead, *rest.split("\n  ")))
        texts = [_MACRO.sub(lambda found: _MACROS[found[1]], text) for text in given if text]
        summary = tuple(text for text in texts if not text.startswith("> "))
        rows[name] = Template(state, summary, tuple(x[2:] for x in texts if x.startswith("> ")))
    return rows


_ADDS: Final = "{subject}<author> [{past:?}added|adds] taint {taint} to {selector}."
CAUSES: Final = {
    "Pod": _rows(_POD),
    "ResourceClaim": _rows(_CLAIM),
    "Device": _rows(_DEVICE),
    "DeviceTaintRule": _rows(_RULE, _ADDS),
    "ResourceSlicePatch": _rows(_RULE, "{subject}<author> is applied to {selector}."),
    "ManagedCluster": _rows(_CLUSTER),
    "Placement": _rows(_PLACEMENT),
}
"""By kind and cause."""
for _kind in ("DeviceTaintRule", "ManagedCluster"):
    CAUSES[_kind]["NotAllowed"] = CAUSES["Device"]["NotAllowed"]
NOTES: Final = _rows(_NOTES)
"""By name."""
