"""The end of a namespace: its content goes first.

Owns: the finalizer `kubernetes` of namespaces, and the conditions that say what holds one up.
Never: deletes anything outside a terminating namespace, or overrides an object's finalizers.
Start at: controller.py; conditions.py holds the decisions as pure functions.
"""
