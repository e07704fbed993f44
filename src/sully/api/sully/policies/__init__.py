"""Policies that set taints: of clusters and of devices.

Owns: defaults, validation and columns of ClusterTaintPolicies and DeviceTaintPolicies.
Never: decides which taints a policy sets; `domain` does.
Start at: device.py, then cluster.py.
"""
