"""Kubeconfig files and credentials.

Owns: loading and writing kubeconfig, client certificates, tokens that rotate, exec plugins.
Never: sends a request to an API server.
Start at: kubeconfig.py (loading), then access.py (what a connection needs).
"""
