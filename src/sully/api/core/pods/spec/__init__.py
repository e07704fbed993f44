"""Owns what is wrong with a pod spec, in a pod or in a template, part by part.

Never changes a pod: `creation/` beside this package does.
Start at `validation.py`.
"""
