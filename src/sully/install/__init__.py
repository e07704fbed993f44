"""What a Kubernetes cluster needs so that Sully's controllers can run in it, as manifests.

Owns: custom resource definitions from the field tables (crds.py, limits.py), the rights of what
runs (rights.py), the workload (workload.py), and all of it in order (manifests.py).
Never: talks to a server; `sully install` does, and `deploy/` is the same written down.
Start at: manifests.py.
"""
