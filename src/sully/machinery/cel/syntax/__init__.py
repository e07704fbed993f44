"""Owns the syntax of expressions: text to tokens to a tree, with macros expanded.

Never knows a type or a value beyond literals: `checker.py` and `evaluation/` do.
Start at `parser.py`.
"""
