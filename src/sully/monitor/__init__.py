"""Reports the health of devices as DeviceHealths: the agent of a node, and what others signal.

Owns: the calls of vendor libraries (nvml.py, source.py) and the agent around them (agent.py,
slices.py), and the receiver of signals (receiver.py, signals.py).
Never: decides what a measurement or a signal means, which is in `domain/health`; taints a device.
Start at: agent.py.
"""
