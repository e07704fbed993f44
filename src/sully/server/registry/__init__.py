"""Writes: create, update, patch, delete and subresources, for every kind.

Owns: the steps of a write from body to commit, metadata, subresources with verbs of their own.
Never: knows HTTP, or a rule of a single kind (its Strategy does).
Start at: writes.py (what all writes share), then creates.py and updates.py.
"""
