"""Which manager owns which field: the managedFields of an object.

Owns: field sets and their wire format, typed walks over an object, what a write changes about
ownership.
Never: decides a conflict; apply.py does.
Start at: managed.py, then typed.py (the walk) and fieldset.py.
"""
