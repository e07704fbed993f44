"""Owns what simulated nodes look like, and what a kubelet would do with a pod next.

Never writes, waits or reads a clock: `controllers/simulatednodes` does, with what is decided here.
Start at fleet.py (the machines), then kubelet.py (the next step of a pod).
"""
