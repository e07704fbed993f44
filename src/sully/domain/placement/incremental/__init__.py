"""Owns the decisions of all placements of a fleet, kept while clusters and placements change.

Never decides otherwise than `schedule.py`, which starts from nothing: tests compare both.
Start at `fleet.py`.
"""
