"""ResourceQuotas and LimitRanges: how much the objects of a namespace may use.

Owns: the two kinds and what LimitRanges do to new pods.
Never: counts usage: that is the admission of the server.
Start at: `quotas.py`.
"""
