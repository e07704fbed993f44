"""Agents that measure the health of the devices of a node and report it as a DeviceHealth.

Owns: the calls of vendor libraries (nvml.py), and the loop around them (agent.py).
Never: decides what a measurement means, which is in `domain/health`; taints a device.
Start at: nvml.py.
"""
