"""`sully install`: the controllers in a Kubernetes cluster.

Owns: its flags, the settings that they mean, the writes, and waiting until the controllers run.
Never: knows what is installed; that is the package `install`.
Start at: command.py.
"""
