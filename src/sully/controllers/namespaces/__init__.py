"""The deletion of namespaces, after their content.

Owns: the finalizer `kubernetes` of namespaces, and the conditions that report what remains.
Never: deletes anything outside a terminating namespace, or overrides an object's finalizers.
Start at: controller.py; conditions.py holds the decisions as pure functions.
"""
