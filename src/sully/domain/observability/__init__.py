"""What is counted and reported about devices and evictions, for metrics and notifications.

Owns: counts of the devices of a pool, which taints block pending pods, the life of an eviction.
Never: reads a clock or a cache; the caller passes objects and the time.
Start at pool_counts.py.
"""
