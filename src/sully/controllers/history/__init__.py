"""Owns the records of taint rules (TaintRecords), and how long all records are kept.

Never writes EvictionRecords (`controllers/eviction` does) and never changes a rule.
Start at controller.py, then retention.py (which records are deleted).
"""
