"""Notifications to people: what is reported, to whom, when, and with which text.

Owns: the kinds of notifications, the configuration file, grouping and rates, payloads.
Never: reads a clock or a file, or sends anything; `controllers/notifications` does.
Start at kinds.py, then batches.py.
"""
