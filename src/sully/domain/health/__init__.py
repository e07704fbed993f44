"""The health of devices: what reports are worth at a time, and which devices they are about.

Owns: the status of a device from a report (reports.py) and from all of them (matching.py).
Never: taints a device; measures anything.
Start at: reports.py.
"""
