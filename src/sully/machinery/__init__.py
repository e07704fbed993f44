"""Kubernetes mechanics that know no kind.

Owns: errors, field paths, field tables, decoding, labels, patches, CEL.
Never: does I/O, reads a clock, or imports a package above.
Start at: schema.py (what a field table is), then strategy.py (what a kind does on write).
"""
