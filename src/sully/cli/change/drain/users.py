"""The pods on devices to drain, and which of them are evicted only if the user says so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sully.cli.change.drain.cordons import Cordon
from sully.cli.change.output import is_dry_run, text_stream
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.scheduling.objects import Pod
    from sully.planning.simulation.drain import DrainRequest

_MOST = 5
"""How many pods a text lists."""
_ENDLESS = ("ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")
"""Controllers whose pods are restarted when they have finished."""


def users_of(cordon: Cordon, request: "DrainRequest") -> "list[Pod]":
    from sully.views.snapshot.kinds import PODS

    pods = cordon.snapshot.of(PODS).values()
    users = request.drained.users(cordon.snapshot.usage, pods)
    return [pod for pod in users if not pod.is_terminating]


def refuse_data_loss(session: Session, cordon: Cordon, request: "DrainRequest") -> None:
    """Refuse to evict pods that lose data if nobody is asked."""
    from sully.cli.change.confirm import can_ask

    if is_dry_run(session) or (not session.options.yes and can_ask(text_stream(session))):
        return
    if pods := _losing_data(session, cordon, request):
        raise CommandError(
            "pods with emptyDir volumes use the devices, and would lose the data in them:"
            f" {_listed(pods)}\n"
            "  use --delete-emptydir-data to evict them, or --when-idle to let them finish"
        )


def data_risks(session: Session, cordon: Cordon, request: "DrainRequest") -> tuple[str, ...]:
    """Return which pods lose data, unless the user has said that they may."""
    pods = _losing_data(session, cordon, request)
    return (data_loss_text([pod.label for pod in pods]),) if pods else ()


def data_loss_text(names: Sequence[str]) -> str:
    """Return which pods lose data if they are evicted."""
    lose = "loses" if len(names) == 1 else "lose"
    pods = f"{number_of(len(names), 'pod')} {lose} the data in emptyDir volumes"
    return f"{pods}: {_names_text(names)}"


def _losing_data(session: Session, cordon: Cordon, request: "DrainRequest") -> "list[Pod]":
    if session.options.delete_emptydir_data or not request.settings.evicts:
        return []
    return [pod for pod in users_of(cordon, request) if pod.has_empty_dir]


def refuse_unmanaged(session: Session, cordon: Cordon, request: "DrainRequest") -> None:
    """Refuse to evict pods that would not run elsewhere, as `kubectl drain` does."""
    from sully.views.devices.drained import is_of_daemon_set

    if session.options.force or not request.settings.evicts:
        return
    users = users_of(cordon, request)
    unmanaged = [pod for pod in users if pod.owner is None]
    if unmanaged:
        raise CommandError(
            "pods without a controller use the devices, and would not be recreated:"
            f" {_listed(unmanaged)}\n  use --force to evict them, or --when-idle to let them finish"
        )
    daemons = [pod for pod in users if is_of_daemon_set(pod)]
    if daemons:
        raise CommandError(
            "pods of DaemonSets use the devices, and cannot run on other nodes:"
            f" {_listed(daemons)}\n"
            "  use --ignore-daemonsets to leave them on the devices, or --force to evict them"
        )


def warn_of_endless(session: Session, cordon: Cordon, request: "DrainRequest") -> None:
    """Warn of pods that a drain with --when-idle would wait for indefinitely."""
    if request.settings.evicts:
        return
    users = users_of(cordon, request)
    endless = [pod for pod in users if pod.owner is not None and pod.owner.kind in _ENDLESS]
    if endless:
        session.warn(
            f"warning: pods of {', '.join(sorted({pod.workload_text for pod in endless}))} do not"
            f" finish by themselves: {_listed(endless)}\n"
            "  scale these down, or drain without --when-idle"
        )


def _listed(pods: "Sequence[Pod]") -> str:
    return _names_text([pod.label for pod in pods])


def _names_text(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
