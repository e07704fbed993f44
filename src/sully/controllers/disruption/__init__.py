"""How many pods may be disrupted voluntarily.

Owns: the status of budgets, and stale `DisruptionTarget` conditions of pods.
Never: evicts, or decides what a budget allows; that is domain/workloads/budgets.py.
Start at: controller.py.
"""
