"""Managed clusters and the placements that select them.

Owns: their causes.
Never: renders text.
Start at: `clusters.py`.
"""
