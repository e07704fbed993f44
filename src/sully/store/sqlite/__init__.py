"""The store on the disk of one machine: SQLite underneath, reads from memory.

Owns: the table, the thread that writes to it, and what is compressed.
Never: decides conflicts on the disk; they are decided on the event loop, before the disk is asked.
Start at: store.py, then writer.py and database.py.
"""
