"""Long work on many records in turns with other requests.

All requests share one event loop, and one list can have all objects of a kind: what is done with
each of them is done for some at a time.
"""

from collections.abc import AsyncIterator, Sequence

from sully.runtime.tasks import let_others_run
from sully.store.base import Record

AT_A_TIME = 128
_BYTES_AT_A_TIME = 1 << 17


async def in_turns(records: Sequence[Record]) -> AsyncIterator[list[Record]]:
    """Yield records, some at a time; other requests are served in between."""
    part: list[Record] = []
    size = 0
    for record in records:
        part.append(record)
        size += len(record.value)
        if size >= _BYTES_AT_A_TIME or len(part) >= AT_A_TIME:
            yield part
            part, size = [], 0
            await let_others_run()
    if part:
        yield part
