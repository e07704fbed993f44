"""Decides about one pod at a time: where it goes, or why nowhere, with an account of the devices.

A refusal holds for every pod that asks the same until something in the cluster changes, so a queue
of a thousand alike is looked at once. Reads and decides only; controller.py acts on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from sully.api.resource.claim_types import ResourceClaim
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.exhausted import Exhausted
from sully.controllers.scheduling.questions import Asking, Question, told_of
from sully.controllers.scheduling.spent import MANY, Spent
from sully.controllers.scheduling.wishes import Options, Wish, unallocated
from sully.domain.allocation.accounts import MOST_NODES, Survey, account_for
from sully.domain.allocation.lapses import AsOf
from sully.domain.allocation.rechecks import evicting_taints
from sully.domain.allocation.requests import Demand, claim_key, prepare
from sully.domain.allocation.verdicts import Failed, Unresolved
from sully.domain.claims.reservations import reserved_for
from sully.domain.scheduling.account import (
    Account,
    Blocked,
    account_of,
    tainted_claim,
)
from sully.domain.scheduling.decisions import (
    ERROR,
    Concern,
    Place,
    Refuse,
    decide,
    refuse_everywhere,
)
from sully.domain.scheduling.extended import Backings, Extension
from sully.domain.scheduling.filters import not_evaluated, rejects
from sully.domain.scheduling.messages import in_filter
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import Amounts, requests_of
from sully.machinery.cel import CostBudget, CostBudgetExceededError
from sully.runtime.clock import Clock


class Placed(msgspec.Struct, frozen=True):
    """A pod that gets a node."""

    place: Place
    extension: Extension | None = None
    """The claim for its extended resources there; its devices are the last of the place."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that gets none."""

    why: Refuse
    account: Account | None = None
    deallocate: ResourceClaim | None = None
    question: Question = b""
    """Every pod with this question is refused as well; empty if that depends on more."""


@dataclass(frozen=True, slots=True)
class _Objection:
    reason: str
    concern: Concern = Concern.NOTHING
    blocked: Blocked | None = None


class Judge:
    """Decides where pods run."""

    def __init__(
        self,
        *,
        devices: Devices,
        cluster: Cluster,
        backings: Backings,
        clock: Clock,
        options: Options,
    ) -> None:
        self._devices = devices
        self._cluster = cluster
        self._backings = backings
        self._clock = clock
        self._options = options
        self._heed = options.heed
        self._spent = Spent(devices.catalogue)
        self._exhausted = Exhausted(devices.catalogue)
        for each in (self._spent, self._exhausted):
            cluster.on_gain(each.gained)
            devices.ledger.on_release(each.freed)
        self._world: tuple[int, ...] = ()
        self._refused: dict[tuple[Question, bool], tuple[Refused, list[str]]] = {}
        """Refusals in this state of the world, by question and whether it was asked briefly, with
        the claims they name."""

    def judge(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        *,
        briefly: bool = False,
        budget: CostBudget | None = None,
    ) -> Placed | Refused:
        """Decide about a pod whose claims are all there.

        `briefly`, a refusal need not say why, nor one that was told before be told again. Raises
        UnfinishedError if the budget has slices; without one the pod gets the usual budget.
        """
        for objection in self._objections(pod, claims):
            return self._object(pod, objection)
        wanted = unallocated(claims)
        as_of = self._as_of()
        demand = self._demand(pod, wanted, as_of, budget or CostBudget(self._options.cost_units))
        if isinstance(demand, Refuse):
            return Refused(demand)
        if len(wanted) < len(claims):
            # What it has already decides as well, and that is its own.
            return self._answer(pod, claims, demand, None)
        asking = Asking(pod, wanted, as_of, briefly=briefly)
        return (
            self._remembered(asking)
            or self._since(asking, demand)
            or self._but_spent(asking, demand)
            or self._anew(asking, demand)
        )

    def question(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Question:
        """Return what a pod asks; nothing if the answer depends on more than that."""
        if len(unallocated(claims)) < len(claims) or any(self._objections(pod, claims)):
            return b""
        return Asking(pod, claims, self._as_of()).question

    def _as_of(self) -> AsOf | None:
        if not self._options.ends:
            return None
        return AsOf(self._clock.now(), self._devices.inventory.times)

    def _anew(self, asking: Asking, demand: Demand) -> Placed | Refused:
        found = self._answer(asking.pod, asking.wanted, demand, asking)
        if isinstance(found, Refused) and found.why.reason != ERROR:
            found = replace(found, question=asking.question)
            self._exhausted.add(asking.question, found.why.concern)
            names = [claim_key(each) for each in asking.wanted]
            self._refused[asking.question, asking.briefly] = found, names
        return found

    def _answer(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        demand: Demand,
        asking: Asking | None,
    ) -> Placed | Refused:
        """Ask all nodes, so that a refusal can say what each of them said."""
        requests = requests_of(pod)
        wish = self._wish(pod, claims, demand, requests)
        refusing: set[str] = set()
        found = decide(pod, requests, self._cluster.by_load(), wish, refusing)
        if isinstance(found, Refuse):
            explains = self._options.compat.explains_pending_pods
            silent = not explains or (asking is not None and asking.briefly)
            account = None if silent else self._account(pod, wish)
            return Refused(found, account, wish.to_deallocate)
        if asking is not None and len(refusing) >= MANY:
            self._spent.add(asking.question, refusing)
        return self._placed(found, wish)

    def _since(self, asking: Asking, demand: Demand) -> Placed | Refused | None:
        """Ask nodes that gained something since all of them refused, if all of them did."""
        self._exhausted.in_world(self._devices.catalogue.version, self._backings.version)
        since = self._exhausted.since(asking.question) if self._exhausted else None
        if since is None:
            return None
        pod, requests = asking.pod, requests_of(asking.pod)
        wish = self._wish(pod, asking.wanted, demand, requests)
        refusing: set[str] = set()
        found = decide(pod, requests, self._cluster.among(since.nodes), wish, refusing)
        if isinstance(found, Place):
            self._exhausted.refused(asking.question, refusing, Concern.NOTHING)
            return self._placed(found, wish)
        if found.reason == ERROR:
            return None
        self._exhausted.refused(asking.question, refusing, found.concern)
        why = Refuse("", concern=since.concern)
        return Refused(why, question=asking.question) if asking.briefly else None

    def _but_spent(self, asking: Asking, demand: Demand) -> Placed | None:
        """Ask only nodes that may have gained something since pods like this one were refused."""
        self._spent.in_world(self._devices.catalogue.version, self._backings.version)
        spent = self._spent.on(asking.question) if self._spent else ()
        if not spent:
            return None
        pod, requests = asking.pod, requests_of(asking.pod)
        wish = self._wish(pod, asking.wanted, demand, requests)
        refusing: set[str] = set()
        found = decide(pod, requests, self._cluster.by_load(but=spent), wish, refusing)
        self._spent.add(asking.question, refusing)
        return self._placed(found, wish) if isinstance(found, Place) else None

    def _wish(
        self, pod: Pod, claims: Sequence[ResourceClaim], demand: Demand, requests: Amounts
    ) -> Wish:
        backed = self._backings.backed(requests)
        return Wish(pod, claims, demand, self._devices, self._options, backed)

    def _placed(self, place: Place, wish: Wish) -> Placed:
        state = self._cluster.get(place.node)
        return Placed(place, wish.extension(wish.provided(state)) if state is not None else None)

    def _demand(
        self,
        pod: Pod,
        wanted: Sequence[ResourceClaim],
        as_of: AsOf | None,
        budget: CostBudget,
    ) -> Demand | Refuse:
        """Return what is still to be allocated, in a form that is quick to try on nodes."""
        if not wanted:
            # Devices may still have to provide extended resources.
            return Demand((), budget)
        match prepare(wanted, self._devices.inventory.class_, self._heed, as_of, budget):
            case Unresolved(message):
                return refuse_everywhere(pod, message, len(self._cluster), Concern.CLASSES)
            case Failed(error):
                return Refuse(in_filter(error), ERROR, Concern.CLASSES)
            case Demand() as demand:
                return demand

    # -- what needs no node -----------------------------------------------------------------------

    def _object(self, pod: Pod, objection: _Objection) -> Refused:
        nodes, blocked = len(self._cluster), objection.blocked
        why = refuse_everywhere(pod, objection.reason, nodes, objection.concern)
        return Refused(why, Account(nodes=nodes, blocked=(blocked,)) if blocked else None)

    def _objections(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Iterator[_Objection]:
        if field := not_evaluated(pod):
            yield _Objection(f"this scheduler does not evaluate {field}")
        for claim in claims:
            name = claim_key(claim)
            if self._devices.is_in_flight(claim):
                yield _Objection(f"resource claim {name} is in the process of being allocated")
            elif (blocked := self._would_evict(pod, claim)) is not None:
                text = f"resourceclaim {name} holds a device with an untolerated NoExecute taint"
                yield _Objection(text, Concern.TAINTS, blocked)

    def _would_evict(self, pod: Pod, claim: ResourceClaim) -> Blocked | None:
        """Say why a pod that joins a claim now would have to leave at once."""
        allocation, options = claim.status.allocation, self._options
        if allocation is None or not (options.taints and options.compat.checks_allocated_claims):
            return None
        if reserved_for(claim, uid=pod.metadata.uid):
            return None
        found = evicting_taints(
            allocation, self._devices.taints, now=self._clock.now(), terms=options.eviction
        )
        return tainted_claim(claim_key(claim), found) if found else None

    # -- why not ----------------------------------------------------------------------------------

    def _account(self, pod: Pod, wish: Wish) -> Account | None:
        """Look at the nodes once more, and count what spoke against which devices."""
        nodes = len(self._cluster)
        if wish.unavailable:
            away = sorted(wish.unavailable.items())
            blocked = (Blocked(claim=name, nodes=count) for name, (_, count) in away)
            return Account(nodes=nodes, blocked=tuple(blocked))
        demand = wish.demand(tuple(wish.backed))
        if isinstance(demand, Failed) or not demand.claims:
            return None
        survey = self._survey(pod, wish)
        try:
            refused = account_for(demand, survey, self._devices.ledger)
        except CostBudgetExceededError:
            return None
        return account_of(refused, nodes=nodes, reached=len(survey.reached), counted=len(survey))

    def _survey(self, pod: Pod, wish: Wish) -> Survey:
        requests, survey = requests_of(pod), Survey()
        for state in islice(self._cluster.by_load(), MOST_NODES):
            refuses = rejects(state, pod, requests, wish.backed) is not None
            offers = survey.others if refuses else survey.reached
            offers.append(self._devices.catalogue.offer(state.place))
        return survey

    # -- the same again ---------------------------------------------------------------------------

    def _remembered(self, asking: Asking) -> Refused | None:
        """Return what a pod that asks the same was told in this state of the world."""
        world = (
            self._cluster.version,
            self._devices.ledger.version,
            self._devices.catalogue.version,
            self._backings.version,
        )
        if world != self._world:
            self._world = world
            self._refused.clear()
        # Who gets a node need not pay for this: every placement is a new state of the world.
        found = self._refused.get((asking.question, asking.briefly)) if self._refused else None
        if found is None:
            return None
        refused, claims = found
        account = refused.account
        if account is not None:
            account = told_of(account, claims, asking.wanted)
        return replace(refused, account=account)
