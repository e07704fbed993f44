"""Objects go when nobody owns them any more.

Owns: the graph of who owns whom, and what is done when an owner goes.
Never: decides what a deletion means for dependents; that is domain/workloads/ownership.py.
Start at: controller.py, then graph.py.
"""
