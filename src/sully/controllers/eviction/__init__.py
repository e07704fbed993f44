"""Owns the eviction of pods from tainted devices through the API, and the status of rules.

Never decides which pod is evicted when: that is `sully.evictor`.
Start at controller.py, then executor.py (calls) and status.py (rules).
"""
