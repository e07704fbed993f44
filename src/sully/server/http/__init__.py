"""The API over HTTPS.

Owns: routes, negotiation, streaming, access control, health and metrics pages.
Never: knows what a write does; that is server/api.py.
Start at: app.py.
"""
