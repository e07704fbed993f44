"""On which node a pod runs.

Owns: what a pod asks of a node, which nodes fit, which of them is best, and how errors read.
Never: chooses devices; that is `domain/allocation`, which is asked once per node.
Start at: `decisions.py`; `filters.py` has the constraints, `messages.py` the texts, `diagnosis.py`
the messages for pods without devices, `extended.py` resources that devices provide.
"""
