"""What all commands that talk to a server share.

Owns: their flags, the connection, snapshots, error messages.
Never: knows what a single command is about.
Start at: session.py (how a command runs), then options.py.
"""
