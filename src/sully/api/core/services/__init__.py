"""Services and their Endpoints.

Owns: their validation and defaults.
Never: routes traffic.
Start at: `services.py`.
"""
