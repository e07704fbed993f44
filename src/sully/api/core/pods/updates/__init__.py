"""What may change in a pod that exists, by endpoint.

Owns: updates of the spec, of the status, bindings, and the endpoints for parts of the spec.
Never: decides who may write; that is authorization.
Start at: update.py, then status.py.
"""
