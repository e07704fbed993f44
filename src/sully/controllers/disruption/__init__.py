"""How many pods may be taken away on purpose.

Owns: the status of budgets, by which evictions are decided, and marks on pods that did not go.
Never: evicts; and what a budget allows, domain/workloads/budgets.py says.
Start at: controller.py.
"""
