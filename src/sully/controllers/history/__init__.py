"""Owns the memory of taint rules (TaintRecords), and how long records of all kinds are kept.

Never writes EvictionRecords (`controllers/eviction` does) and never changes a rule.
Start at controller.py, then tally.py (who left) and retention.py (what is forgotten).
"""
