"""Writes the clusters of placements.

Owns: PlacementDecisions and the status of placements, and events about them.
Never: selects clusters; that is `domain/placement`, kept up to date by `views/fleet.py`.
Start at: `controller.py`.
"""
