"""What all commands that speak to a server share.

Owns: their flags, the connection, tables and documents on the screen, and texts of failures.
Never: knows what a single command is about.
Start at: calling.py (how a command runs), then tables.py.
"""
