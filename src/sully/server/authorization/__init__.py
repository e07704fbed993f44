"""Who may do what: rules, roles and bindings turned into verdicts.

Owns: the question (attributes.py), the rules (rules.py), their index, default roles, reviews.
Never: authenticates, or reads other objects than roles and bindings.
Start at: attributes.py (the question and the answer), then authorizer.py (how it is decided).
"""
