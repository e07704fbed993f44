"""Owns giving pods a node and their claims devices, and saying why a pod has none.

Never decides by itself which node or device: that is `domain/scheduling` and `domain/allocation`.
Start at controller.py (one pod at a time), then judging.py, then binder.py (what is written).
"""
