"""Owns simulated clusters: members of this hub that exist only in the API, and their agents.

Never touches other clusters.
Start at members.py (the clusters), then agents.py (what their agents do); wiring.py adds both.
"""
