"""The account that every pod has unless it names another.

Owns: ServiceAccounts called `default`.
Never: touches other accounts, or makes tokens.
Start at: controller.py.
"""
