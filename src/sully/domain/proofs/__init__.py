"""Proofs: Jobs that test one device before it is given back.

Owns what such a Job and its claim are, how exactly one device is selected, and what the end of a
Job means. Never knows who wants the proof, or when; never does I/O.
Start at requests.py, then outcomes.py; controllers/proofjobs.py executes it.
"""
