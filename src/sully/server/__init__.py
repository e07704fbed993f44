"""The embedded API server: Kubernetes' verbs over a store.

Owns: requests and answers, the steps of a write, watches, discovery, OpenAPI, identity.
Never: decides about devices or clusters, or imports client, controllers or cli.
Start at: api.py (the verbs), then registry/writes.py (a write), then http/app.py (the wire).
"""
