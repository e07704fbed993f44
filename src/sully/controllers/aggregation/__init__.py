"""Gathers the rules of aggregated cluster roles.

Owns: the controller clusterrole-aggregation-controller.
Never: decides what somebody may do; it only writes rules that others wrote into one place.
Start at: controller.py; what is gathered is decided in sully.api.rbac.aggregation.
"""
