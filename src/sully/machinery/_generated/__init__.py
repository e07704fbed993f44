"""Written by tools/generate_types.py.

Owns: the Structs of the types that the field tables describe.
Never: is edited by hand.
Start at: the `*.fields` of the group.
"""
