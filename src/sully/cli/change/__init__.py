"""Commands that change something: the plan, the confirmation, the change, and its progress.

Owns: the arguments and output of `plan`, `taint`, `untaint`, `cordon`, `drain`, `uncordon`,
`maintenance` and `signal`.
Never: computes a plan; planning does, with the code of the controllers.
Start at: taint/taint.py.
"""
