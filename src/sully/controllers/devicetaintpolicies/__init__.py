"""The controller of DeviceTaintPolicies: from a fault to a taint rule and back.

Owns the DeviceTaintRules of policies, and the status of policies.
Never decides: `domain/devicepolicies` does. Never evicts: the rules are what evictors act on.
Start at controller.py.
"""
