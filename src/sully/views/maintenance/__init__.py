"""What maintenances read: the devices they select, and the pods that use them.

Owns the join of slices, nodes, claims and pods for DeviceMaintenances.
Never writes, and decides nothing about a device.
Start at devices.py.
"""
