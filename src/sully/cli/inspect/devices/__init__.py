"""`sully devices`: every device with its taints and its pods.

Owns: the flags, the filters and the output of the command.
Never: changes anything.
Start at: `command.py`.
"""
