"""Pods replaced step by step when their template changes.

Owns: the ReplicaSets of Deployments and the status of Deployments.
Never: touches pods; and what the next step of a rollout is, domain/workloads/rollout.py says.
Start at: controller.py.
"""
