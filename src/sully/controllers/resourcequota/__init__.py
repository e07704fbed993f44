"""The quota controller: calculates what each namespace uses of its quotas.

Owns: `status` of ResourceQuotas, with the server, which charges what is created.
Never: refuses anything; the server does (server/admission/quota.py).
Start at: controller.py.
"""
