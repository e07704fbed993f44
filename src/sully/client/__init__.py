"""The client of an API server, the embedded one or any other.

Owns: the Transport protocol, its HTTP and in-process forms, kubeconfig, informers, events.
Never: imports `server` or `store`, interprets a kind, or loads aiohttp or yaml before use.
Start at: transport.py (the protocol), then informers/ (what controllers read).
"""
