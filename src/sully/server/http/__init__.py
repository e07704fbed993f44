"""The API over HTTPS.

Owns: routes, negotiation, streaming, the door (who, as whom, whether), health and metrics pages.
Never: knows what a write does; that is the room above (server/api.py).
Start at: app.py.
"""
