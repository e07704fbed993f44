"""The garbage collector: deletes objects without owners.

Owns: the graph of owners and dependents, and the deletion of dependents.
Never: decides what a deletion means for dependents; that is domain/workloads/ownership.py.
Start at: controller.py, then graph.py.
"""
