"""Reads: objects, lists and watches from the store.

Owns: objects as the API shows them, lists and their continue tokens, watches, indexes, the expiry
of events.
Never: writes, except to expire events.
Start at: reads.py (get and list), then watching.py (watch).
"""
