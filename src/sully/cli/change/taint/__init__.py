"""`sully taint` and `sully untaint`: taints of devices and clusters.

Owns: their arguments, the rules that are created, replaced and deleted, and the writes.
Never: previews a change; that is the package `plan` beside it.
Start at: taint.py.
"""
