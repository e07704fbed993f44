"""Jobs: which pods they create and delete, how each pod is counted once, when they fail.

Owns: the decisions of the Job controller, as functions of values.
Never: writes, waits or reads the clock.
Start at: sync.py (what the controller does next), then objects.py.
"""
