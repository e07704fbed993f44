"""Commands about data: backup, restore and migration between stores.

Owns: the flags of `backup`, `restore` and `migrate`, and those for etcd.
Never: reads or writes a row; store does.
Start at: backup.py.
"""
