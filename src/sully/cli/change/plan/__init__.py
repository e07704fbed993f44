"""`sully plan`: the objects of a change, its simulation, and its output.

Owns: reading manifests, what the server would store of them, and how a plan is printed.
Never: simulates anything itself; that is the package `planning`.
Start at: plan.py.
"""
