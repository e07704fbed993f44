"""A cluster at one moment, from a server or from files.

Owns: loading, reading files of objects, and the views over one state.
Never: watches, or writes.
Start at: snapshot.py (the views), then loading.py (from a server) and file.py (from files).
"""
