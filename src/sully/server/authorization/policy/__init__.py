"""The default cluster roles and bindings.

Owns: their content, as data, and bringing a cluster back to it (reconcile.py).
Never: decides anything; these roles are objects like any others, which people may change.
Start at: reconcile.py (all of them), then user_facing.py (admin, edit, view).
"""
