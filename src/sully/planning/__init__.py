"""Rehearses changes on a copy of the cluster, with the code that controllers run.

Owns: the copy, its clock, and the loop in which pods leave, are replaced and are scheduled.
Never: writes anything anywhere, or decides what a controller or the domain decides.
Start at: `rehearsal.py`.
"""
