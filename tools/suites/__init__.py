"""Runs the test suites of Python clients against `sully up`: `make suites DIR=…`.

Owns: how each suite is started, which of its cases are out of scope and why, and the table.
Never: contains or changes a suite; the checkouts are in a folder outside the project.
Start at: ../run_suites.py; the cases that are out of scope are in out-of-scope.toml.
"""
