"""Pods, their claims and their workloads.

Owns: the causes of their state.
Never: renders text.
Start at: `pods.py`.
"""
