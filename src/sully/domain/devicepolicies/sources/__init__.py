"""What counts as a fault of a device: conditions, health reports, node state, Prometheus queries.

Owns: the evaluation of the sources of a DeviceTaintPolicy.
Never: sends a query; `controllers/devicetaintpolicies` does.
Start at: evaluation.py.
"""
