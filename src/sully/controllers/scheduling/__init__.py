"""Owns the execution of scheduling: feeds `sully.scheduler` from informers, writes its effects.

Never decides which node or device a pod gets: that is `sully.scheduler` and `domain`.
Start at controller.py (the scheduling cycle), then binder.py (the binding cycle).
"""
