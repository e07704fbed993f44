"""Commands that run Sully, issue kubeconfigs, and install it in a Kubernetes cluster.

Owns: the flags of `up`, `controllers`, `install`, `capabilities` and `kubeconfig`.
Never: composes what runs; app.py and remote.py do.
Start at: up/command.py.
"""
