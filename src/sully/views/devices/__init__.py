"""Devices with effective attributes and taints, and the pods that use them.

Owns: slices, patches and rules merged; which pods use which device; the taints on the devices of a
pod; kept up to date at the cost of what changed.
Never: writes, or decides what to evict.
Start at: inventory.py (devices), then usage.py (pods and claims) and exposures.py (both joined).
"""
