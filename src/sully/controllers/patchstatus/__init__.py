"""Owns what the status of slice patches says: whom they are for, and which expressions failed.

Never decides which device a patch is for: that is `domain/devices/patches.py`, through the
inventory.
Start at controller.py.
"""
