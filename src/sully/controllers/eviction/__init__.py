"""Owns making pods leave devices that carry taints nothing tolerates, and saying how far that is.

Never decides by itself who leaves and when: that is `domain/eviction.py`, and `domain/pacing.py`.
Start at controller.py, then evictor.py (what is done to a pod), pacer.py and status.py (rules).
"""
