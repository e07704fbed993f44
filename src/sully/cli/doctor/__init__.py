"""`sully doctor`: checks an installation.

Owns: reading what the checks need, from a data directory (files.py) and a server (servers.py), and
printing the findings.
Never: decides what a finding is; `domain.diagnosis` does.
Start at: doctor.py.
"""
