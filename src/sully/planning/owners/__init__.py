"""The owners of pods in a plan: when they replace evicted pods, and what a plan reports of them.

Owns: Jobs, StatefulSets and other owners on the copy of a cluster, and their part of the plan.
Never: decides what an owner does; that is `domain/planning/owners.py` and `domain/workloads`.
Start at: planned_owners.py.
"""
