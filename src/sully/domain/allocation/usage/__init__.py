"""What is allocated already: devices, shares of their capacity, and shared counters.

Owns: the sums.
Never: decides which device a request gets.
Start at: `ledger.py`.
"""
