"""The table: cause → state → sentences → remedies, by kind.

Every text of `sully explain` that is ours is in this file and in note_templates.py; messages of
Kubernetes and of Open Cluster Management come in as fields and stay as they are. A row has the
reason for the cause, the state and the first sentence. Below it are further sentences, fields with
notes after `*`, and the remedies after `>`; a line that is indented more continues the one before.
render.py has the syntax of a sentence.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from sully.explain import note_templates

_AUTHOR: Final = (
    "[, created by {by} at {created}|, created with {program} at {created}"
    "|, created by {by}|, created with {program}|, created at {created}]"
    "[, reason {why:quoted}][{by:?},|{program:?},|{created:?},|{why:?},]"
)
WORKLOAD_KINDS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
_MACROS: Final = {
    "policy-devices": "It is for {devices:device}, of which {faulty} have a fault and {unavailable}"
    " are unavailable because of it.[ The next taint changes at {at}.]",
    "maintenance-units": "Of {units:unit} {done} {done:is/are} done, and {closed} {closed:is/are}"
    " closed.[ The next step is at {at}.]",
    "node-devices": "It has {devices:device}: {used} in use, {free} free, {tainted} tainted.",
    "on": "{subject} is on node {node}",
    "pending": "{subject} [has been Pending since {since}|is Pending]",
    "deleting": "{subject} is being deleted[ since {since}]",
    "terminating": "{subject} is being deleted[, until {ends} at the latest|, which should have"
    " ended at {overdue}]",
    "due": "{subject} is due for eviction from node {node}[ since {due}] because of {sources:2}.",
    "sources": "[{sources:2}|a taint that is not recorded]",
    "where": "[ on node {node}|{all_nodes:?} (for all nodes)"
    "|{some_nodes:?} (for the nodes of a selector)]",
    "author": _AUTHOR,
    "adds": f"{{subject}}{_AUTHOR} [{{past:?}}added|adds] taint {{taint}} to {{selector}}.",
    "were-evicted": "[{complete:?}{evicted:pod} {evicted:was/were} evicted because of it"
    "|At least {evicted:pod} {evicted:was/were} evicted because of it"
    "|It is not known how many pods were evicted because of it]",
    "selects": "It selects {devices:published device}, {allocated} in use",
    "terminating-pods": "[; {terminating:more pod} {terminating:is/are} terminating]",
    "stop": "To stop: [{pausable:?}sully evictions pause {name}, or ]{stop}; evicted pods are not"
    " restored.",
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
    {removals:all} before.
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
EvictionRateLimited (Evicting): <due> The rate is {rate}, and other pods are evicted first.
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
EvictedInLoop (Evicted): {subject} of {owner} was evicted at {at} because of a taint on one of its
    devices.
OtherScheduler (Pending): <pending>, and only scheduler {scheduler} can schedule it.
  > Run scheduler {scheduler}, or remove spec.schedulerName.
SchedulingGated (Pending): <pending> because of {gates:scheduling gate}: {gates}.
  > The controller that set the gate removes it when the pod may be scheduled.
UnsupportedConstraint (Pending): <pending>: this scheduler does not evaluate {field}.
  > Remove {field}, or use another scheduler for the pod.
VolumesNotReady (Pending): <pending>: {message}.
  > Check the PersistentVolumeClaims of the pod.
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
NoNodes (Pending): <pending>, and [{named:?}node {named:or} does not exist|there is no node].
  > [{named:?}Its controller deletes it, or node {named:or} has to be added again.|Add a node.]
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
NodesUnsuitable (Pending): <pending>: [{single:?}[node {node}|the only node]
    {reasons:all}|{same:?}all {nodes} nodes {reasons:all}|of {nodes} nodes, {reasons:counted}].
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
AllocatedTwice (Conflict): {subject}<where> was allocated to {claims:claim}, which cannot all use
    it: {claims:all}.
  It is in use by {users}. Schedulers that allocate the same devices do not see each other's
    decisions until they are written.
  *taints
  > Delete all of these pods: kube-scheduler considers a device as free once one of its claims is
    released, also if another keeps it. Then give each scheduler devices of its own: a DeviceClass
    that only its pods use, or nodes.
CapacityExceeded (Conflict): {subject}<where> was allocated to {claims:all}, which together take
    more {text} than it has.
  *taints
  > Delete pods until it has enough. Then give each scheduler devices of its own: a DeviceClass that
    only its pods use, or nodes.
StillAllocated (Unpublished): {subject} is no longer published by any driver, but claim {claims}
    still {claims:has/have} it.
  *taints
  > Check that the driver is running; the allocation ends with its last pod.
UnknownDevice (Unpublished): {subject} is not published by any driver, and no claim has it.
  *taints
  > If it should exist, check its name, and that its driver is running.
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
PodsNotEvicted (InUse): {subject}<where> is in use by {users}, [{stays:?}and {sources:2}
    {sources:prevents/prevent} scheduling of other pods|which is not evicted despite {sources:2}].
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
FeatureDisabled (Inactive): It has no effect: {inactive}.
  > {enable:sentence}
NotSupported (Inactive): It has no effect: {inactive}.
  > {enable:sentence}
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
    a rate of {rate}][{budgets:?}, as PodDisruptionBudgets allow]<terminating-pods>.
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
RuleDeleted (Removed): It was deleted[ by {deleted_by}][ at {at}]. <were-evicted>.
Expired (Removed): It expired[ at {at}]. <were-evicted>.
Applied (Applied): It selects {devices:published device}, and all of its values apply.
PartlyOverridden (Applied): It selects {devices:published device}, but {values} of its values
    {values:does/do} not apply: other patches take precedence, {winners}.
  > The higher priority wins, then the older patch, then the name.
OtherPatchesFirst (Overridden): It selects {devices:published device}, but none of its values
    applies: other patches take precedence, {winners}.
  > The higher priority wins, then the older patch, then the name.
"""

_LOOP: Final = """
EvictionLoop (Evicting): *loops
  <adds>
  <selects>.
"""

_NODE: Final = """
NodeNotFound (Missing): {subject} does not exist, but drivers publish {devices:device} for it.
  > Add the node again, or delete its ResourceSlices.
Cordoned (Unschedulable): {subject} is cordoned: no new pod is scheduled to it. <node-devices>
  > To make it schedulable again: kubectl uncordon {node}
NotReady (Unschedulable): {subject} has taint {taint}: no new pod is scheduled to it.
    <node-devices>
  > Check its kubelet: kubectl describe node {node}
NoDevices (Ready): {subject} is schedulable, but no driver publishes devices for it.
  > Check that the driver is running on the node.
DevicesUnusable (Unusable): {subject} has no free device: they cannot be allocated ({text}).
    <node-devices>
  > Its driver has to publish the whole pool, without contradictions.
DevicesTainted (Tainted): {subject} has no free device: {sources:2} {sources:prevents/prevent}
    scheduling on {tainted} of {devices:device}. <node-devices>
  > [{cordoned:?}To uncordon its devices: sully uncordon node {node}]
  > [{removable:?}Tolerate the taint, or have it removed: sully rules]
DevicesInUse (InUse): {subject} has no free device: all are in use. <node-devices>
DevicesFree (Ready): {subject} is schedulable and has {free:free device}. <node-devices>
  [{sources:2} {sources:prevents/prevent} scheduling on {tainted} of them.]
"""

_WORKLOAD: Final = """
EvictionLoop (Evicting): *loops
PodsPending (Pending): {pending} of {pods:pod} of {subject} {pending:is/are} Pending.
PodsToBeEvicted (Evicting): {evicting} of {pods:pod} of {subject} will be evicted.
PodsRunning (Running): {pods:pod} of {subject} {pods:has a node/have nodes}, and none will be
    evicted because of a device taint.
NoPods (Idle): {subject} has no pods[: {message}].
  > [{message:?}Correct what the message names.|Check its replicas, and that its controller is
    running.]
Finished (Finished): {subject} has finished ({phase}).
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
TaintNotTolerated (Tainted): <available>, but taint {taint.taint}[, added by {taint.by},|, added
    with {taint.program},] prevents selection by {placements:placement/placements} {placements:3}.
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

_DEVICE_POLICY: Final = """
NotProcessed (Pending): {subject} has not been processed: no controller has reported on it yet.
  > Check that 'sully controllers' run, or 'sully up'; 'sully capabilities' shows whether they can
    taint devices on this server.
StormOfFaults (Stopped): {subject} stopped[ at {since}]: too many devices had new faults at the same
    time. Their taints stay, and no further step begins.
  <policy-devices>
  > Find the common cause of the faults, then run: sully policies resume {name}
SelectsNoDevice (Inactive): {subject} is for no published device.
  > Compare its selector with the output of 'sully devices'.
DryRun (DryRun): {subject} only reports: {unavailable:device} would be unavailable.
  <policy-devices>
  > Set spec.mode to Enforce to let it taint devices.
ApprovalNeeded (Active): {subject} waits for the approval of {waiting:device}.
  <policy-devices>
  > Approve a taint with: sully policies approve {name} DEVICE
LimitReached (Active): {subject} holds back {held:device}: more must not be unavailable.
  <policy-devices>
  > Repair a tainted device, or raise spec.limits.
ProofFailed (Active): {subject} keeps the taint of recovered devices: {proof:sentence}
  <policy-devices>
  > Repair the device, or declare it healthy: sully policies clear {name} DEVICE
ProofNeeded (Active): {subject} waits for proof that {proving:recovered device}
    {proving:is/are} healthy[: {proof}].
  <policy-devices>
  > [{manual:?}Declare a device healthy with: sully policies clear {name} DEVICE|Wait for the Job,
    or declare a device healthy with: sully policies clear {name} DEVICE]
DevicesFlap (Active): {subject} keeps the taint of {flapping:device} that failed too often.
  <policy-devices>
  > Find out why, then declare a device healthy: sully policies clear {name} DEVICE
FaultsFound (Active): {subject} sets taint {taint}.
  <policy-devices>
NotEvaluated (Degraded): {subject} is for {devices:device} and found no fault, but it cannot
    evaluate all of them.
  > Correct the source, or what it reads.
NoFault (Idle): {subject} is for {devices:device}, and none has a fault.
"""

_MAINTENANCE: Final = """
NotProcessed (Pending): {subject} has not been processed: no controller has reported on it yet.
  > Check that 'sully controllers' run, or 'sully up'; 'sully capabilities' shows whether they can
    taint devices on this server.
SelectsNoDevice (Inactive): {subject} matches no published device, so it does nothing.
  > Compare its selector with the output of 'sully devices'.
Scheduled (Scheduled): {subject} is for {devices:device} and starts at {starts}[; it closes the
    first at {at}]. No pod is evicted before it starts.
Paused (Paused): {subject} is paused: no further step begins, and no pod is evicted.
  <maintenance-units>
  > Continue it with: sully maintenance resume {name}
UnitsFailed (Running): {subject} has {failed:failure}, which stay closed.
  <maintenance-units>
  > Repair what failed, then run: sully maintenance retry {name} UNIT
ApprovalNeeded (Running): {subject} waits for the approval of {waiting:unit}.
  <maintenance-units>
  > When the work is done, run: sully maintenance approve {name} UNIT
Running (Running): {subject} has closed {closed:unit}[ and ends at {ends}].
  <maintenance-units>
Completed (Completed): {subject} is complete: all devices are returned to service.
Ended (Ended): {subject} ended at {ends} before all work was done.
  <maintenance-units>
  > Create another maintenance for the rest.
Cancelled (Cancelled): {subject} was cancelled: all devices are returned to service.
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
        stripped = (text.strip() for text in (lead, *rest.split("\n  ")))
        texts = [_MACRO.sub(lambda match: _MACROS[match[1]], text) for text in stripped if text]
        summary = tuple(text for text in texts if not text.startswith("> "))
        rows[name] = Template(state, summary, tuple(x[2:] for x in texts if x.startswith("> ")))
    return rows


CAUSES: Final = {
    "Pod": _rows(_POD),
    "ResourceClaim": _rows(_CLAIM),
    "Device": _rows(_DEVICE),
    "DeviceTaintRule": _rows(_LOOP) | _rows(_RULE, "<adds>"),
    "ResourceSlicePatch": _rows(_RULE, "{subject}<author> is applied to {selector}."),
    "Node": _rows(_NODE),
    **{kind: _rows(_WORKLOAD) for kind in WORKLOAD_KINDS},
    "ManagedCluster": _rows(_CLUSTER),
    "DeviceTaintPolicy": _rows(_DEVICE_POLICY),
    "DeviceMaintenance": _rows(_MAINTENANCE),
    "Placement": _rows(_PLACEMENT),
}
"""By kind and cause."""
for _kind in ("DeviceTaintRule", "ManagedCluster"):
    CAUSES[_kind]["NotAllowed"] = CAUSES["Device"]["NotAllowed"]
NOTES: Final = _rows(note_templates.TABLE)
"""By name."""
