"""What a Kubernetes cluster needs so that Sully's controllers can run in it, as manifests.

Owns: custom resource definitions from the field tables (crds.py, limits.py), the RBAC rules of
the controllers (rbac.py), the workload (workload.py), and all of it in order (manifests.py).
Never: talks to a server; `sully install` does, and `deploy/` contains the same.
Start at: manifests.py.
"""
