"""`/debug/placements/`: why a Placement has its clusters, and what-if requests.

Owns: the bodies and responses of these pages.
Never: selects clusters; that is `domain/placement`.
Start at: pages.py.
"""
