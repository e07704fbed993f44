"""Who asks: client certificates, service-account tokens, impersonation, and reviews of them.

Owns: what makes a `User` out of a connection and its headers; tokens and the key that signs them.
Never: says what a user may do (authorization does); impersonation only asks it.
Start at: authenticator.py (one request), then tokens.py and accounts.py (what a token is worth).
"""
