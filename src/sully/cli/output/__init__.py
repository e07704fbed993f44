"""How commands print: values, tables, JSON and YAML, progress, untrusted text.

Owns: what output looks like on a terminal and in a pipe.
Never: reads an object from a server or decides what a command prints.
Start at: tables.py, then formatting.py.
"""
