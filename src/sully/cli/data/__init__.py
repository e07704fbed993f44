"""Commands that keep data: backup, restore and the way from one store to another.

Owns: the flags of `backup`, `restore` and `migrate`, and those that tell how etcd is reached.
Never: reads or writes a row; store does.
Start at: backup.py.
"""
