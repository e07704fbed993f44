"""Three replicas on three members of etcd, a pair on each machine, with faults.

Owns: the machines, what is done to them, the work that continues meanwhile, what must hold of it.
Never: knows how replicas do their work; it sees what clients, the audit log and processes show.
Start at: `rounds.py`.
"""
