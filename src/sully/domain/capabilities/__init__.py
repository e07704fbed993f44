"""What an API server that is not ours offers, and what Sully therefore does there.

Owns: reading a server's documents (offers.py), what evicts and which controllers run (duties.py),
what that server would drop or that has no effect there (fitting.py), and a table of it (table.py).
Never: calls a server; `client.capabilities` does.
Start at: offers.py, then duties.py.
"""
