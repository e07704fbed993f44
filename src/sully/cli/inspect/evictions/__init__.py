"""`sully evictions`: the rules that evict pods, their progress, and pauses.

Owns: the flags and the output of the command, and of `pause` and `resume`.
Never: evicts.
Start at: `command.py`.
"""
