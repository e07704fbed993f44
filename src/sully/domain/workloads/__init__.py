"""ReplicaSets, Deployments, PodDisruptionBudgets and owners.

Owns: counts, rollouts, revisions, disruption budgets and garbage collection, as functions of
values.
Never: writes, waits or reads a clock.
Start at: workloads.py (pods and their owners as seen here), then replicas.py.
"""
