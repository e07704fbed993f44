"""Controllers that are killed at random points while pods are scheduled and evicted.

Owns: the fleet they work on, the ledger of all changes to it, the killing.
Never: knows how controllers do their work.
Start at: `rounds.py`.
"""
