"""PgQueuer: pgqueuer_jobs.py DSN JOBS CONCURRENCY

Prints the seconds it took to enqueue the jobs and to work them. With JOBS = 0, only creates the tables.
"""

import asyncio
import logging
import sys
import time

import asyncpg
from pgqueuer import Queries, QueueManager
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.types import QueueExecutionMode

BATCH = 100
DSN, JOBS, CONCURRENCY = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


async def main():
    driver = AsyncpgPoolDriver(await asyncpg.create_pool(DSN, min_size=2, max_size=CONCURRENCY + 2))
    queries = Queries(driver)
    if JOBS == 0:
        await queries.install()
        return
    begin = time.monotonic()
    for _ in range(0, JOBS, BATCH):
        await queries.enqueue(["job"] * BATCH, [b"x"] * BATCH, [0] * BATCH)
    middle = time.monotonic()
    manager = QueueManager(queries)

    @manager.entrypoint("job")
    async def job(_):
        pass

    await manager.run(batch_size=10, mode=QueueExecutionMode.drain)
    print("%.3f %.3f" % (middle - begin, time.monotonic() - middle))


logging.disable(logging.CRITICAL)
asyncio.run(main())
