"""`sully history`: past taints and evictions, from records.

Owns: the flags and the output of the command.
Never: changes anything.
Start at: `command.py`.
"""
