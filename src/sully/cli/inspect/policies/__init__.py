"""`sully policies`: what policies do, and what they wait for from people.

Owns: the flags and the output of the command.
Never: taints devices: that is the controller of policies.
Start at: `command.py`.
"""
