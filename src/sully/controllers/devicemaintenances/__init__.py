"""The controller of DeviceMaintenances: closes devices, drains them, and gives them back.

Owns the DeviceTaintRules of maintenances, the evictions of their drains, and their status.
Never decides: `domain/maintenance` and `domain/drain` do.
Start at controller.py.
"""
