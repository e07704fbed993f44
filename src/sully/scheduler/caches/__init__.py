"""What the scheduling core knows of nodes, devices, assigned pods and volumes.

Owns: the state that cluster events change.
Never: decides about a pod.
Start at: `node_cache.py`.
"""
