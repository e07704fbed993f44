"""Discovery: what an API server serves, and adapting to other servers.

Owns: discovery, capabilities, group versions and the conversion of older shapes.
Never: retries or caches objects.
Start at: resources.py (discovery), then adapting.py (a transport for any server).
"""
