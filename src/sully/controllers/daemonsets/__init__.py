"""The controller of DaemonSets.

Owns: the pods and revisions of DaemonSets, and the status of DaemonSets.
Never: decides which node gets a pod; that is domain/workloads/daemonsets.py.
Start at: controller.py.
"""
