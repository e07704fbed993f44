"""Owns the demo: a fleet of GPUs in use by several teams, some of them tainted.

Never does what a user with kubectl could not do; the nodes are simulated
(`controllers/simulatednodes`).
Start at filling.py, then the manifests beside it.
"""
