"""Devices, and what taints or patches them.

Owns: the causes of their state.
Never: renders text.
Start at: `devices.py`.
"""
