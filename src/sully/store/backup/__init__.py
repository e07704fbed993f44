"""Archives of a data directory, and the way back.

Owns: the format of an archive, copying a database in use, and putting a restored one in place.
Never: opens the store of a running server; a backup is one of its commits.
Start at: archive.py, then restore.py.
"""
