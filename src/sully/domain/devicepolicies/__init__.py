"""Device policies: when a fault becomes a taint, how strong it is, and when it ends.

Owns the state machine of a DeviceTaintPolicy: observations in, states of devices out, with reasons.
Never does I/O or reads the time; controllers/devicetaintpolicies executes the decisions.
Start at decisions.py, then states.py; what counts as a fault is in sources/.
"""
