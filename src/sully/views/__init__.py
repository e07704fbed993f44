"""Informer caches joined into what several controllers and commands read, and kept up to date.

Owns: devices with their taints, the pods and claims that use them, placements with their clusters.
Never: writes, or decides; decisions about a value are in `domain`.
Start at: devices/inventory.py (devices and taints), then devices/usage.py (pods and claims) and
fleet.py (placements).
"""
