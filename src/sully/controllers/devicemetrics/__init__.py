"""Owns the metrics of devices, policies, pending pods and evictions.

Never writes objects, and never decides what counts: that is `domain/observability`.
Start at pools.py, then metrics.py for the names.
"""
