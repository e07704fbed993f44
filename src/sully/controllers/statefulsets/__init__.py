"""The controller of StatefulSets.

Owns: the pods, volume claims and revisions of StatefulSets, and the status of StatefulSets.
Never: decides which pod is created or deleted; that is domain/workloads/statefulsets.py.
Start at: controller.py.
"""
