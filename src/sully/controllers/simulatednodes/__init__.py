"""Owns simulated nodes: machines that exist only in the API, their devices, and the pods on them.

Never touches other nodes, nor pods on them.
Start at nodes.py (the machines), then kubelet.py (the pods); wiring.py adds all to a manager.
"""
