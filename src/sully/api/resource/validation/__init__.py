"""Owns what is wrong with objects of resource.k8s.io: every problem as a value.

Never changes an object and never reads another one: what differs is in `Options` of `checks.py`.
Start at `claims.py` or `slices.py`.
"""
