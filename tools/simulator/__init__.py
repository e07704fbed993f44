"""A deterministic simulation of a whole control plane, with faults: `make simulate`.

Owns: an event loop, clocks, a disk and a network that follow from a seed, the random histories that
run on them, and the invariants that are checked after every step.
Never: uses time, threads, sockets or files of the machine.
Start at: `world.py` (one run), then `loop.py`, `disk.py`, `network.py` and `invariants.py`.
"""
