"""Sully: taints and tolerations for devices and clusters.

Start at docs/architecture.md: the packages, and the life of one write.
"""

__version__ = "0.2.0"
