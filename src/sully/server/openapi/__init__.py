"""OpenAPI: what every kind and request looks like, for `kubectl explain`, validation and tools.

Owns: the documents under /openapi, made from the field tables and the scheme.
Never: describes a kind by hand, or builds anything before it is asked for.
Start at: documents.py (what is served), then schemas.py (types) and operations.py (requests).
"""
