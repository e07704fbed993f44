"""Finds the cause for each kind of object: reads a snapshot, returns a `Finding`.

Owns: which facts of a snapshot decide between the causes of a kind.
Never: writes a sentence; templates.py has them.
Start at: `pods/pods.py`.
"""
