"""The transport over HTTP.

Owns: requests over aiohttp, connections, proxies, decoding of answers and of Status errors.
Never: loads aiohttp before it is used, or interprets a kind.
Start at: transport.py.
"""
