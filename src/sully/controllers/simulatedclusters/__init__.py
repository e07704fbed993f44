"""Owns simulated clusters: members of this hub that exist only in the API, and their agents.

Never changes other clusters.
Start at controller.py.
"""
