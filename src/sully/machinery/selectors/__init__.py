"""Labels and fields that select objects.

Owns: the syntax of label selectors and field selectors, and whether an object matches.
Never: knows which fields a kind can be selected by; the API packages do.
Start at: labels.py.
"""
