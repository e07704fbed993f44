"""The controller of Deployments.

Owns: the ReplicaSets of Deployments and the status of Deployments.
Never: changes pods, or decides the next step of a rollout; that is domain/workloads/rollout.py.
Start at: controller.py.
"""
