"""Quotas: what the objects of a namespace use, and whether a quota allows more.

Owns: the resources a quota can limit, what one object uses of them, and the decision on a write.
Never: reads or writes objects; the server and a controller do.
Start at: evaluators.py, then decisions.py.
"""
