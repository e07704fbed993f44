"""A number of equal pods, kept.

Owns: the pods of ReplicaSets and the status of ReplicaSets.
Never: decides which pod goes first or what counts; that is domain/workloads/replicas.py.
Start at: controller.py.
"""
