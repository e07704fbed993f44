"""Owns the end of rules and patches that say themselves when they end.

Never decides about a taint: whoever wrote the annotation did.
Start at controller.py.
"""
