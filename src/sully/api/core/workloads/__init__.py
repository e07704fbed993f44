"""Kinds that make copies of a pod, and the templates they have.

Owns: what such kinds share: template, counts, the status endpoint; PodTemplates and
ReplicationControllers.
Never: knows kinds of the apps and batch groups; their packages use this one.
Start at: workload.py.
"""
