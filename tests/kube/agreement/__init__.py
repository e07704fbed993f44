"""Compares plans with what a cluster then does.

worlds.py generates small worlds and changes, objects.py writes them, pods.py follows what happens,
outcomes.py compares it with the plan, and trial.py does all that with many worlds at a time.
"""
