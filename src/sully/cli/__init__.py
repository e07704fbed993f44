"""The command line: `sully …` and, as a kubectl plugin, `kubectl sully …`.

Owns: flags, texts for people, exit codes.
Never: decides anything; `up` starts app.py, the others use client.
Start at: main.py.
"""
