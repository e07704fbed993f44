"""Owns the environments of the API: which variables and functions an expression can use where.

Never evaluates: `environment.py` beside this package compiles and runs.
Start at `devices.py`.
"""
