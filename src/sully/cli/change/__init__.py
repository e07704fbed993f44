"""Commands that preview and act: what would happen, a question, the change, and its progress.

Owns: the words of `plan`, `taint` and `untaint`, the question, the progress bar.
Never: computes a plan; planning does, with the code of the controllers.
Start at: taint.py.
"""
