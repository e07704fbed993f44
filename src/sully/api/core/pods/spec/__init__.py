"""Owns what is wrong with a pod spec, in a pod or in a template, part by part.

Never changes a pod: `defaults.py` and `admission.py` beside this package do.
Start at `validation.py`.
"""
