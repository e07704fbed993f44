"""Makes sure that a rate holds before a rule evicts: Kubernetes may have an evictor of its own.

Nothing shows whether the eviction controller of Kubernetes is disabled, until there is a rule: it
writes the status of each within a second. So a rule with a rate first only prevents scheduling.
"""

from typing import TYPE_CHECKING

from sully.cli.client.inaction import inaction_text
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.spinner import spinner
from sully.client.transport import Key
from sully.domain.capabilities.evictors import OF_SULLY, kubernetes_evicts, status_written
from sully.domain.capabilities.inaction import Inaction, Subject
from sully.views.kinds import RULES

if TYPE_CHECKING:
    from sully.domain.capabilities.control_plane import ControlPlane

LONGEST_SECONDS = 10.0
"""How long to wait until Sully's evictor has written the status of a rule."""
SETTLE_SECONDS = 2.0
"""How long Kubernetes gets to write it, too, once Sully has."""
POLL_SECONDS = 0.2
INSTEAD = "  to evict all pods immediately, use --rate 0; 'sully drain --rate' evicts by itself"


def may_have_second(plane: "ControlPlane") -> bool:
    """Report whether Sully evicts beside Kubernetes, and what else evicts is not known."""
    return plane.is_mixed and not plane.second_evictor


def refusal_of_rate(inaction: Inaction) -> CommandError:
    return CommandError(f"{inaction_text(inaction)}\n{INSTEAD}")


async def refuse_second_evictor(session: Session, name: str) -> None:
    """Fail if Kubernetes writes the status of a rule that does not evict yet, besides Sully."""
    with spinner(lambda: f"Checking which controllers act on devicetaintrule {name}"):
        evidence = await _evidence(session, name)
    if evidence:
        raise refusal_of_rate(Inaction(subject=Subject.RATES, second_evictor=evidence))


async def _evidence(session: Session, name: str) -> str:
    clock, plain = session.clock, RULES.read_as(dict)
    end, written = clock.monotonic() + LONGEST_SECONDS, False
    while clock.monotonic() < end:
        rule = await session.transport.get(plain, Key("", name))
        if evidence := kubernetes_evicts([rule]):
            return evidence
        if status_written(rule, OF_SULLY) and not written:
            written, end = True, clock.monotonic() + SETTLE_SECONDS
        await clock.sleep(POLL_SECONDS)
    if not written:
        session.warn(
            f'warning: the controllers of Sully have not reported on devicetaintrule "{name}";'
            " whether the rate holds is not known\n"
            "  to check them:  sully doctor"
        )
    return ""
