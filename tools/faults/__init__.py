"""Injects faults below and around a running control plane, and checks what clients saw.

Owns: the fault layer of the disk and the clock, the proxy to etcd, and the checker of histories.
Never: changes Sully: the servers are those that users run.
Start at: rounds.py.
"""
