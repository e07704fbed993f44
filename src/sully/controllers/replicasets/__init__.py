"""The controller of ReplicaSets.

Owns: the pods of ReplicaSets and the status of ReplicaSets.
Never: decides which pod is deleted first or what counts; that is domain/workloads/replicas.py.
Start at: controller.py.
"""
