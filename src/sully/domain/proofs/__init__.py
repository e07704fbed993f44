"""Proofs: Jobs that test one device before it is given back.

Owns what such a Job and its claim are, how they select one device, and what the end of a Job means.
Never knows what needs a proof or when, and does no I/O; controllers/proofjobs.py executes it.
Start at requests.py, then outcomes.py.
"""
