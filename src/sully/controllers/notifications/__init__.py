"""Owns sending notifications to people: which changes cause one, and the requests to receivers.

Never decides what is sent together, when and with which text: that is `domain/notifications`.
Start at sources.py, then sender.py.
"""
