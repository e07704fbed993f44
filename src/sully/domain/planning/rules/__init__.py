"""DeviceTaintRules from command lines: which to create, to split or to delete, and the grammar.

Owns: which rules a change of taints needs.
Never: writes them; commands do.
Start at: taint_rules.py, then taint_removal.py.
"""
