"""The values of plans, and the decisions that only plans make.

Owns: the format of a plan, what replaces an evicted pod, the devices of a class.
Never: reads a clock or a cluster; `sully.planning` runs the simulation.
Start at: `report.py`.
"""
