"""Formats of single values: names, quantities, versions, timestamps, addresses, texts.

Owns: what a value has to look like, and how it is read and written.
Never: knows a field or an object; its callers do.
Start at: names.py (what most fields need), then quantity.py.
"""
