"""Controllers, and the framework and manager that run them.

Owns: the controllers, one module or package each, and the framework that runs them.
Never: imports `server` or `store`, or lets one controller import another.
Start at: framework/controller.py (what a controller is), then serviceaccounts.py (the smallest).
"""
