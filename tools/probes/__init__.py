"""Measures which statements and branches of Sully tests execute, at a tenth of a tracer's cost.

Owns the probes compiled into `sully.*`, and their translation into the data file of coverage.py,
which then reports. Never measures tests, tools or libraries. Start at `tests/coverage_plugin.py`.
Why: docs/adr/0020-coverage-by-probes.md.
"""
