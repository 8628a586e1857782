"""Procrastinate: procrastinate_jobs.py DSN JOBS CONCURRENCY

Prints the seconds it took to enqueue the jobs and to work them. With JOBS = 0, only creates the tables.
"""

import asyncio
import logging
import sys
import time

import procrastinate

BATCH = 100
DSN, JOBS, CONCURRENCY = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=DSN, max_size=CONCURRENCY + 2))


@app.task(name="job")
async def job(number):
    pass


async def main():
    async with app.open_async():
        if JOBS == 0:
            await app.schema_manager.apply_schema_async()
            return
        begin = time.monotonic()
        for first in range(0, JOBS, BATCH):
            await job.batch_defer_async(*({"number": n} for n in range(first, first + BATCH)))
        middle = time.monotonic()
        await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)
        print("%.3f %.3f" % (middle - begin, time.monotonic() - middle))


logging.disable(logging.CRITICAL)
asyncio.run(main())
