"""From a checked expression to a Python function.

Owns: planning, operators, loops, and access to fields and elements.
Never: checks a type or counts cost; checker.py and `costs` do.
Start at: planner.py.
"""
