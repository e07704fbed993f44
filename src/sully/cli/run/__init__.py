"""Commands that run Sully, let people in and bring it to a Kubernetes cluster.

Owns: the flags of `up`, `controllers`, `install`, `capabilities` and `kubeconfig`.
Never: composes what runs; app.py and remote.py do.
Start at: up.py.
"""
