"""The eviction core: decides which pod is evicted when, and returns what to do.

Owns: the checks before an eviction (tolerations, pauses, cache freshness, rate limits, budgets),
the steps of one eviction, and the records as the one count of evicted pods.
Never: calls the API, waits, or reads a clock: events come in, effects go out.
Start at: core.py (`Evictor.step`), then checks.py, events.py and effects.py.
"""
