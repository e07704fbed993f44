"""What an API server that is not ours offers, and what Sully therefore does there.

Owns: reading a server's own words (offers.py), who evicts and which controllers run (duties.py),
what that server would lose or nobody would heed (fitting.py), and one table of it (telling.py).
Never: asks a server anything; `client.capabilities` does.
Start at: offers.py, then duties.py.
"""
