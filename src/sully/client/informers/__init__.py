"""Caches kept up to date by list and watch, as in client-go.

Owns: reflectors, indexed caches, event handlers, cache freshness and its metrics.
Never: writes.
Start at: informer.py, then reflector.py (list and watch).
"""
