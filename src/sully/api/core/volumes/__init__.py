"""PersistentVolumes and the claims that are bound to them.

Owns: their validation and defaults.
Never: binds or provisions.
Start at: `persistentvolumeclaims.py`.
"""
