"""What the pages of the dashboard ask and change, answered by the code of the commands.

Owns: the routes of the dashboard (routes.py): queries (queries.py), changes with a plan
(proposals.py) and what runs after them (operations.py).
Never: decides anything that a command decides; every change is parsed as a command line first.
Start at: routes.py.
"""
