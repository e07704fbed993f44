"""What would happen, before it happens: the values, apart from the rehearsal itself.

Owns: the form of a plan, what replaces a pod that left, what is left of a class, the taint grammar.
Never: looks at a clock or a cluster; `sully.planning` rehearses with these on a copy.
Start at: `report.py`.
"""
