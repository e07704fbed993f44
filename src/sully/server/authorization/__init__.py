"""Authorization: node identities and RBAC.

Owns: request attributes, the authorizer, the index of roles and bindings, default roles, reviews.
Never: authenticates, or reads other objects than roles and bindings.
Start at: attributes.py, then authorizer.py.
"""
