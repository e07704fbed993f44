"""Which devices a pod gets.

Owns: the choice of devices for claims on a node, the form of an allocation, and why there is none.
Never: looks for slices or claims; they come as offers (`pools/`) and a ledger (`usage/ledger.py`).
Start at: `allocator.py`; `search.py` is the heart, `candidates.py` what makes it fast.
"""
