"""The certificate by which pods know the API server.

Owns: ConfigMaps called `kube-root-ca.crt`.
Never: makes certificates or knows keys.
Start at: controller.py.
"""
