"""A folder for KUBEBUILDER_ASSETS, and the programs in it.

Owns: the command that writes the folder, and the `kube-apiserver` and `etcd` in it.
Never: starts a controller that envtest does not have.
Start at: assets.py.
"""
