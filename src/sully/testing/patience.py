"""How long tests wait for what has to happen: one number for all, which no busy machine exceeds.

A test that waits for a condition fails only if something is stuck, so the number costs nothing
when all is well. What a test measures is never a time.
"""

PATIENCE = 300
"""Seconds after which whatever a test waits for is stuck."""
