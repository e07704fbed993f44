"""Devices, taints, rules and patches.

Owns: a device as the scheduler sees it, which rule or patch selects it, which slices of a pool
count.
Never: writes, waits or reads a clock.
Start at: device.py, then rules.py (DeviceTaintRule) and patches.py (ResourceSlicePatch).
"""
