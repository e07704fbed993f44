"""Simulates changes on a copy of the cluster, with the code that controllers run.

Owns: the copy, its virtual clock, and the loop in which pods are evicted, replaced and scheduled.
Never: writes anything, or decides what a controller or the domain decides.
Start at: `simulation/simulator.py`. Which pods are evicted is decided by `sully/evictor/core.py`
(run by simulation/evictor.py), where pods go by `sully/scheduler/core.py` (run by
simulation/scheduler.py), and which clusters Placements select by `sully/domain/placement/` (run by
placements.py).
"""
