"""What a rule with effect None would do if it evicted: which pods, of which owners, and when.

Kubernetes reports this once, in the text of status.py, and only as numbers. This is a condition of
our own that is kept up to date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from sully.domain.eviction.status import Counts, Report
from sully.machinery.formats.plurals import number_of

SHOWN = 20
"""How many namespaces and owners are listed; also with long names the message stays valid."""


class PreviewedPod(msgspec.Struct, frozen=True, order=True):
    """A pod that would be evicted."""

    namespace: str
    name: str
    owner: str
    """Kind and name of its controller, or of itself."""
    after: int = 0
    """After how many seconds its tolerations expire."""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule would do."""

    published: int = 0
    allocated: int = 0
    evictions: Collection[PreviewedPod] = ()


SELECTED_BY_CRITERIA = (
    "selects devices by class or expression: its status shows which, and their pods"
)


def selection_notice(counts: Counts, *, evicts: bool, paused: bool, counted: bool) -> str:
    """Describe for a warning what a rule selects, and which pods it will evict.

    Devices that are allocated but no longer published count for their pods only.
    """
    devices = number_of(counts.published, "device") if counts.published else "no device"
    text = f"selects {devices}"
    if not evicts:
        return text
    if not counted:
        return f"{text}; its status shows how many pods will be evicted"
    when = "would be evicted if the rule were not paused" if paused else "will be evicted"
    if not counts.pods:
        return f"{text}; no pod {when}"
    places = number_of(counts.namespaces, "namespace")
    return f"{text}; {number_of(counts.pods, 'pod')} in {places} {when}"


def preview(rule: Preview) -> Report:
    """Report what a rule would do, in a format that programs can rely on.

    Four sentences: pods, devices, namespaces, owners. The last two follow only if a pod would be
    evicted, with the largest numbers first.
    """
    evictions = rule.evictions
    devices = f"{number_of(rule.published, 'device')} published, {rule.allocated} allocated."
    if not evictions:
        return Report("False", "NoPodsWouldBeEvicted", f"0 pods would be evicted. {devices}")
    namespaces = Counter(pod.namespace for pod in evictions)
    owners = Counter(f"{pod.namespace}/{pod.owner}" for pod in evictions)
    text = (
        f"{number_of(len(evictions), 'pod')} would be evicted: {_when(evictions)}. {devices}"
        f" By namespace: {_listed(namespaces)}. By owner: {_listed(owners)}."
    )
    return Report("True", "PodsWouldBeEvicted", text)


def _when(evictions: Iterable[PreviewedPod]) -> str:
    later = [pod.after for pod in evictions if pod.after > 0]
    immediate = sum(pod.after <= 0 for pod in evictions)
    if not later:
        return f"{immediate} immediately"
    first, last = min(later), max(later)
    span = f"{first}s" if first == last else f"{first}s to {last}s"
    return f"{immediate} immediately, {len(later)} after {span}"


def _listed(numbers: Counter[str]) -> str:
    """List numbers by name, the largest first, and how many names are omitted."""
    ranked = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    texts = [f"{name} {number}" for name, number in ranked[:SHOWN]]
    if len(ranked) > SHOWN:
        texts.append(f"and {len(ranked) - SHOWN} more")
    return ", ".join(texts)
