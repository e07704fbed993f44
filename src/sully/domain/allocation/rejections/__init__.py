"""Why devices are rejected, and how many for which reason.

Owns: the counts behind the message of an unschedulable pod.
Never: allocates.
Start at: `survey.py`.
"""
