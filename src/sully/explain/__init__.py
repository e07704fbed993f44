"""Explains one object: its state, the cause, and what would change it.

Owns: which facts belong to a question, the causes and their texts, and trials of the scheduler on
a copy of the cluster.
Never: writes to the API, or implements a rule of the scheduler or of eviction a second time.
Start at: `questions.py`, then `causes.py` and `templates.py`.
"""
