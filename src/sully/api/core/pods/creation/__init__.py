"""What a new pod gets before it is validated.

Owns: defaults, fields behind gates, priority, service account and tolerations, merged label keys.
Never: validates; that is `spec/` and strategy.py.
Start at: defaults.py, then admission.py.
"""
