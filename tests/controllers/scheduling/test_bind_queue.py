"""What is written about a pod when several things were decided."""

from __future__ import annotations

from sully.client.transport import Key
from sully.controllers.scheduling.bind_queue import BindQueue, Report, Requeue
from sully.domain.scheduling.causes import NoNodes
from sully.domain.scheduling.decisions import FitError
from sully.domain.scheduling.objects import Pod
from sully.scheduler.effects import Attempt, Bind, MarkUnschedulable
from sully.scheduler.schedule_algorithm import Unschedulable


def test_a_newer_decision_replaces_one_that_is_not_written() -> None:
    queue, key, pod = BindQueue(), Key("a", "p"), Pod()
    heard: list[Key] = []
    queue.enqueue(heard.append, lambda key: (key,))
    unschedulable = Unschedulable(FitError(NoNodes()))
    first = Report(MarkUnschedulable(key, pod, unschedulable, Attempt()))
    second = Bind(key, pod, "n")

    queue.put(key, first)
    queue.put(key, second)
    queue.done(key, first)
    assert queue.get(key) is second
    queue.replace(key, Requeue())
    assert queue.backing_off() == 1
    assert heard == [key, key]
