"""Why something is as it is, in plain sentences: pods, claims, devices, rules, patches, clusters.

Owns: the words for verdicts, and which of several causes is told first.
Never: decides anything anew; what is explained was decided elsewhere in `domain`.
Start at: `story.py` (what an explanation is), then `waiting.py` (a pod that waits).
"""
