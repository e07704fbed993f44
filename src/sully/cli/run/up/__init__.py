"""`sully up`: run a control plane until it is stopped.

Owns: its flags, and the simulated nodes and clusters that it can start with.
Never: composes what runs; app.py does.
Start at: command.py (flags), then args.py (what they configure) and serving.py.
"""
