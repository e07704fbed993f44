"""Owns the functions an expression may call, one module per library.

Never parses, checks or counts cost: a library is a table of signatures and Python functions.
Start at `standard`; `catalogue.py` names the sets that environments choose from.
"""
