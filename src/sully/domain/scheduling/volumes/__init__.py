"""Where the volumes of a pod allow it to run.

Owns: volumes, claims and storage classes as the scheduler reads them, and the filter.
Never: provisions or binds a volume.
Start at: filter.py.
"""
