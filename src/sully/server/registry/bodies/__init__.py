"""Request bodies: from bytes to an object in the storage version.

Owns: decoding, limits, the kind check, and unknown or repeated fields.
Never: validates an object or writes it.
Start at: decoding.py.
"""
