"""How everything above speaks to an API server, ours or another.

Owns: the Transport protocol, its HTTP and in-process forms, kubeconfig, informers, events.
Never: imports `server` or `store`, interprets a kind, or loads aiohttp or yaml before use.
Start at: transport.py (the protocol), then informer.py (what controllers read).
"""
