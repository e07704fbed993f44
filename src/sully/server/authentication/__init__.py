"""Authentication: client certificates, service account tokens, impersonation, token reviews.

Owns: how a `User` follows from a connection and its headers; tokens and the key that signs them.
Never: authorizes; impersonation only asks the authorizer.
Start at: authenticator.py (one request), then tokens.py and service_accounts.py (tokens).
"""
