"""The controller of Jobs.

Owns: the pods of Jobs and the status of Jobs.
Never: decides how failures count or which pods are created; that is domain/workloads/job_sync.py.
Start at: controller.py.
"""
