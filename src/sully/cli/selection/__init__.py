"""Which objects a command line selects.

Owns: the arguments and flags that select devices, patterns, label selectors and KIND/NAME, names
that matched nothing and suggestions.
Never: changes what it selects.
Start at: args.py, then device_selection.py.
"""
