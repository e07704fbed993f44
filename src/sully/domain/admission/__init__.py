"""Owns admission policies: which writes they match, and what their expressions decide.

Never: reads a store, or raises what a client sees: decisions are values with their reasons.
Start at: policies.py.
"""
