"""Finds out about one object what `domain/explaining` needs to put its state into words.

Owns: which facts belong to a question, and trials of the scheduler on a copy of the cluster.
Never: writes anything anywhere, decides, or words a sentence.
Start at: `answers.py`.
"""
