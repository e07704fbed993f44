"""The proofs of one policy: which Jobs it wants, and what they have shown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from sully.api.sully.types import DEVICE_POLICY_KIND, GROUP, VERSION, DeviceTaintPolicy
from sully.client.transport import Key
from sully.controllers.proofjobs import ProofJobs
from sully.domain.devicepolicies.decisions import PolicyDecision
from sully.domain.devicepolicies.settings import DRY_RUN, settings_of
from sully.domain.devicepolicies.states import DeviceState, last_proof_run, proof_run
from sully.domain.proofs.outcomes import ProofOutcome
from sully.domain.proofs.requests import ProofOwner, ProofRequest, run_name
from sully.domain.proofs.selection import NotSelectableError
from sully.views.devicepolicies.policy_devices import PolicyDevices

RETRY: Final = timedelta(seconds=30)
"""When to look again at Jobs that run or cannot be created; events are usually faster."""
_NO_JOBS: Final = "the server has no Jobs"


class PolicyProofs:
    """Runs the Jobs of policies."""

    def __init__(self, jobs: ProofJobs | None) -> None:
        self._jobs = jobs

    async def outcomes(
        self,
        policy: DeviceTaintPolicy,
        devices: PolicyDevices,
        states: Mapping[str, DeviceState],
    ) -> dict[str, ProofOutcome]:
        """Return what the Jobs of recovered devices have shown."""
        job = settings_of(policy).proof_job
        if self._jobs is None or job is None:
            return {}
        runs = {
            device: proof_run(state)
            for device, state in states.items()
            if state.recovered_time is not None
        }
        return await self._jobs.outcomes(_owner(policy), job, runs, devices.exact_expression)

    async def run(
        self, policy: DeviceTaintPolicy, devices: PolicyDevices, decision: PolicyDecision
    ) -> dict[str, str]:
        """Create and delete Jobs; return why some cannot be created, by device."""
        settings, owner = settings_of(policy), _owner(policy)
        job = settings.proof_job if settings.mode != DRY_RUN else None
        if self._jobs is None:
            return dict.fromkeys(decision.proofs, _NO_JOBS)
        if job is None:
            # There may be some of an earlier spec.
            return await self._jobs.sync(owner, ())
        problems: dict[str, str] = {}
        desired: list[ProofRequest] = []
        for device in decision.proofs:
            try:
                expression = devices.exact_expression(device)
            except NotSelectableError as error:
                problems[device] = str(error)
                continue
            desired.append(
                ProofRequest(
                    owner=owner,
                    settings=job,
                    device=device,
                    expression=expression,
                    run=proof_run(decision.states[device]),
                )
            )
        retained = {
            Key(job.namespace, run_name(owner, device, run))
            for device, state in decision.states.items()
            if device not in decision.proofs and (run := last_proof_run(state))
        }
        return problems | await self._jobs.sync(owner, desired, retained)


def _owner(policy: DeviceTaintPolicy) -> ProofOwner:
    return ProofOwner(
        api_version=f"{GROUP}/{VERSION}",
        kind=DEVICE_POLICY_KIND,
        name=policy.metadata.name,
        uid=policy.metadata.uid,
    )
