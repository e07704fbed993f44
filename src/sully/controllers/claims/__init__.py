"""Owns the creation of claims from templates for pods, and their release when pods are finished.

Never selects devices: that is scheduling. The decisions are `domain/claims`.
Start at controller.py (pods: create, reserve), then releasing.py (claims: release, deallocate).
"""
