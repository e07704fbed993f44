"""Owns the forms of objects on the wire: JSON, YAML and protobuf, decoded along a field table.

Never validates beyond types and never knows a kind: field tables and strategies do.
Start at `codec.py`, then `decode.py`.
"""
