"""Owns what expressions cost: an estimate before, a meter during evaluation, a budget for many.

Never decides what happens to an expression that costs too much: the caller does.
Start at `estimate.py` or `budget.py`.
"""
