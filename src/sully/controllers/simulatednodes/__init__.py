"""Owns simulated nodes: machines that exist only in the API, their devices, and the pods on them.

Never changes other nodes, nor pods on them.
Start at nodes.py (nodes, leases, slices), then kubelet.py (pods); wiring.py adds all to a manager.
"""
