"""Owns what several controllers need to know at once: caches joined, and kept up to date.

Never writes, and never decides: questions about a value are answered in `domain`.
Start at devices/inventory.py (devices and their taints), then devices/usage.py (who holds what) and
fleet.py.
"""
