"""What a controller is, what its keys come from, and how controllers are started and stopped.

Owns: the loop of a controller, its sources, leader election, the manager, conditions,
reasons of Events.
Never: knows what a controller does.
Start at: controller.py, then sources.py and manager.py.
"""
