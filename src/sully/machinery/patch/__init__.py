"""Changing an object by a patch, and recording which manager owns which field.

Owns: the four patch formats (json_patch, merge_patch, strategic, apply) and managedFields.
Never: knows a kind (field tables define how to merge), reads a clock, modifies its arguments.
Start at: merge_patch.py (the simplest), then ownership/ and apply.py.
"""
