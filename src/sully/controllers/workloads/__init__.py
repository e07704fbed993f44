"""The controllers of workloads: ReplicaSets, Deployments, StatefulSets, DaemonSets, Jobs, budgets.

Owns: their pods, ReplicaSets, revisions and volume claims, and the status of each.
Never: decides which pods are created or deleted, or what counts; that is domain/workloads.
Start at: replicasets.py, then owned_pods.py (what the controllers of pods share).
"""
