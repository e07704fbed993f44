"""Gives placements their clusters.

Owns: PlacementDecisions and the status of placements, and the events that tell of both.
Never: decides which clusters; that is `domain/placement`, kept up to date by `views/fleet.py`.
Start at: `controller.py`.
"""
