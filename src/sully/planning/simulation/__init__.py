"""A copy of the cluster with its own clock, on which the cores of the controllers run.

Owns: what happens after a change, event by event.
Never: decides for the controllers: it runs their cores.
Start at: `simulator.py`.
"""
