"""Owns making claims from templates for pods, and giving them up when their pods are done.

Never chooses devices: that is scheduling. What is decided on the way is `domain/claims`.
Start at controller.py (pods: make, reserve), then releasing.py (claims: release, deallocate).
"""
