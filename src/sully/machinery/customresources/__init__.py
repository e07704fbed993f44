"""Custom resources: objects whose schema is data, from a CustomResourceDefinition.

Owns: what a structural schema does to an object: pruning, defaults, validation, rules in CEL,
    printed columns, and the field table that patches and apply need.
Never: decides whether a definition is valid (api/apiextensions) or served (server).
Start at: schema.py, then pruning.py, defaulting.py and validation.py.

A schema is the JSON of `openAPIV3Schema`, read as it is. Only schemas that passed the validation of
definitions get here, so their structure is not checked again.
"""
