"""Bodies and responses in the protobuf encoding of Kubernetes.

Owns: the envelope, and which type of the field tables an object has.
Never: encodes fields; that is `machinery/serialization`.
Start at: responses.py.
"""
