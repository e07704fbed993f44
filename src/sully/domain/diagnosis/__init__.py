"""What `sully doctor` concludes from what it has read: one finding per check, with a remedy.

Owns: the thresholds and texts of all checks, which SubjectAccessReviews a role needs.
Never: reads a file, a clock or a server; `cli.doctor` does.
Start at: findings.py.
"""
