"""Seeds with several clients at once, and seeds where the server is killed.

The table has only the index under test. Its answers are compared with a
sequential scan in the same snapshot. Each client also knows which of its rows
must be there: those of its committed transactions, whatever happened since.
"""

import copy
import os
import random
import signal
import threading
import time

from compare import (DUPLICATE, Mismatch, SqlLog, check_no_stale_entries,
                     difference, is_expected, shorten)
from layout import LSM, TABLE, Layout
from operations import Operations
from pgwire import ConnectionLost, PgError
from queries import QueryMaker

THROUGH_TABLE = ("SET enable_seqscan = on; SET enable_indexscan = off; "
                 "SET enable_indexonlyscan = off; SET enable_bitmapscan = off")
THROUGH_INDEX = {
    "index": "SET enable_seqscan = off; SET enable_indexscan = on; "
             "SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
    "only": "SET enable_seqscan = off; SET enable_indexscan = on; "
            "SET enable_indexonlyscan = on; SET enable_bitmapscan = off",
    "bitmap": "SET enable_seqscan = off; SET enable_indexscan = off; "
              "SET enable_indexonlyscan = off; SET enable_bitmapscan = on",
}
PARALLEL = ("SET max_parallel_workers_per_gather = 2; "
            "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
            "SET min_parallel_table_scan_size = 0; "
            "SET min_parallel_index_scan_size = 0; SET random_page_cost = 0; "
            "SET seq_page_cost = 0; SET cpu_operator_cost = 0")
SESSION = ("SET enable_sort = off; SET jit = off; SET enable_tidscan = off; "
           "SET max_parallel_workers_per_gather = 0")

# Errors that a correct statement may get because of concurrency.
CANCELLED = "57014"
CONCURRENT = {CANCELLED, DUPLICATE, "40P01", "55P03"}


def is_tolerated(error, layout):
    return error.sqlstate in CONCURRENT or is_expected(error, layout)


class ClientsRound:
    verifying = SESSION         # the settings of verify_all

    def __init__(self, server, seed, options, statistics, crash):
        self.server = server
        self.seed = seed
        self.rng = random.Random(seed)
        self.options = options
        self.statistics = statistics
        self.crash = crash
        self.log = SqlLog()
        self.layout = Layout(self.rng, options.am, options.types,
                             options.unavailable)
        self.layout.persistence = ""
        if self.rng.random() < 0.3:
            self.layout.unique = "UNIQUE"
        self.cancels = self.rng.random() < 0.5
        self.clients = []
        self.stopping = threading.Event()
        self.failures = []
        self.reconfigured = False

    def legal(self, error):
        """Does the server lack something that this round has taken away?"""
        return False

    def tolerates(self, error):
        return is_tolerated(error, self.layout) or self.legal(error)

    def client(self, number, limits):
        return Client(self, number, limits)

    def housekeeper(self):
        return Housekeeper(self)

    def run_all(self):
        self.configure()
        connection = self.server.connect(log=self.log.session(0))
        connection.query(f"DROP TABLE IF EXISTS {TABLE}")
        connection.query(self.layout.create_table())
        connection.query(self.layout.create_index(LSM))
        connection.close()
        limits = self.layout.limits
        self.clients = [self.client(number, limits)
                        for number in range(1, self.options.clients + 1)]
        for _ in range(self.rng.randint(2, 4) if self.crash else 1):
            self.period()
            self.verify_all()
        connection = self.server.connect(log=self.log.session(0))
        connection.query(f"DROP TABLE {TABLE}")
        connection.close()
        if self.reconfigured:
            self.server.stop()
            self.server.configure({})
            self.server.start()

    def configure(self):
        """Crash seeds run under various settings of the server."""
        if not self.crash:
            return
        rng = self.rng
        # The server's own check fails on a heap page that was truncated away
        # and is zero again, unless full page images hide the page.
        images, check = rng.choice((("on", "''"), ("off", "''"),
                                    ("on", "'all'"), ("on", "'all'")))
        self.server.stop()
        self.server.configure({
            "full_page_writes": images,
            "wal_consistency_checking": check,
            "shared_buffers": rng.choice(("'1MB'", "'4MB'", "'64MB'")),
            "wal_compression": rng.choice(("on", "off")),
        })
        self.server.start()
        self.reconfigured = True

    def period(self):
        """Let all clients work for a while, perhaps until the server is
        killed."""
        self.stopping.clear()
        housekeeper = self.housekeeper()
        workers = self.clients + [housekeeper]
        if self.cancels:
            workers.append(Canceller(self, self.clients + [housekeeper]))
        threads = [threading.Thread(target=self.guard, args=(worker,),
                                    daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        if self.crash:
            self.stopping.wait(self.rng.uniform(0.1, 1.5))
            if not self.failures:
                self.kill(threads)
        else:
            self.stopping.wait(self.rng.uniform(2, 6))
        self.stopping.set()
        for thread in threads:
            thread.join(130)
            if thread.is_alive():
                self.failures.append(Mismatch("a client hangs"))
        if self.failures:
            raise self.failures[0]

    def guard(self, worker):
        """A worker's thread: a fault ends the seed; a lost connection may not.
        """
        try:
            worker.work()
        except ConnectionLost as error:
            if not self.crash:
                self.failures.append(Mismatch(
                    f"connection lost: {error}\n{self.server.log_tail()}"))
                self.stopping.set()
        except (Mismatch, PgError) as error:
            self.failures.append(error)
            self.stopping.set()
        except Exception as error:
            self.failures.append(error)
            self.stopping.set()

    def kill(self, threads):
        """One of the ways in which a server can die."""
        how = self.rng.choice(("immediate", "backend", "all"))
        if how == "backend" and self.kill_backend():
            self.log.lines.append("-- a backend was killed here")
            # The postmaster ends the other processes and recovers by itself.
            # Only when all of them are gone can we distinguish the recovered server from
            # the old one.
            for thread in threads:
                thread.join(60)
            self.stopping.set()
            self.server.wait_ready().close()
            return
        self.log.lines.append("-- the server was killed here")
        if how == "immediate":
            self.server.stop("immediate")
        else:
            self.server.kill()
        self.stopping.set()
        self.server.start()

    def kill_backend(self):
        """Kill the process of some client. Return False if the client has none."""
        connection = self.rng.choice(self.clients).connection
        # The process id may be outdated, so check that it is a child of our server.
        if connection is None or connection.pid not in self.server.children():
            return False
        try:
            os.kill(connection.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def verify_all(self):
        connection = self.server.wait_ready()
        connection.log = self.log.session(0)
        connection.query(self.verifying)
        for client in self.clients:
            client.resolve(connection)
        if self.options.am == "lsm":
            try:
                connection.query(f"SELECT lsm_check('{LSM}'::regclass, true)")
            except PgError as error:
                if self.legal(error):
                    raise
                raise Mismatch(f"lsm_check: {error}") from error
        checker = Checker(self.layout, connection, self.statistics, self.legal)
        checker.whole_index()
        checker.no_twins()
        for client in self.clients:
            checker.own_rows(client)
        for _ in range(5):
            checker.random_query()
        check_no_stale_entries(connection, self.layout)
        connection.close()


class Checker:
    """Compares the index with the table, within one snapshot."""

    def __init__(self, layout, connection, statistics, legal=lambda _: False):
        self.layout = layout
        self.connection = connection
        self.statistics = statistics
        self.legal = legal
        self.maker = QueryMaker(layout)
        self.rng = layout.rng
        self.where = f" WHERE {layout.predicate}" if layout.predicate else ""

    def both(self, sql, mode):
        """The rows according to the table, and according to the index.

        None if the table gives an error that random queries may give. An index
        must not give an error where the table gave none. Runs in a transaction
        that is rolled back, which also restores the settings.
        """
        self.statistics.queries += 1
        self.connection.query(THROUGH_TABLE)
        try:
            expected = self.connection.query(sql).rows
        except PgError as error:
            if not is_expected(error, self.layout):
                raise
            return None
        self.connection.query(THROUGH_INDEX[mode])
        if self.rng.random() < 0.3:
            self.connection.query(PARALLEL)
        self.need_index(sql)
        try:
            return expected, self.connection.query(sql).rows
        except PgError as error:
            if error.sqlstate in (CANCELLED, "40001") or self.legal(error):
                raise
            raise Mismatch(f"query: {sql}\nmode: {mode}\n"
                           f"only the index says: {error}") from error

    def need_index(self, sql):
        """Count whether the plan uses our index.

        It may not. After REINDEX the index may be too new for our snapshot.
        Some random queries, such as k <> 1, have no condition that an index
        can use. If the planner knows that there are no rows (k = NULL), it
        needs no index.
        """
        plan = self.connection.query(f"EXPLAIN (COSTS OFF) {sql}").rows
        if any("One-Time Filter: false" in line for line, in plan):
            return
        self.statistics.index_due += 1
        if not any(f" {LSM}" in line for line, in plan):
            self.statistics.index_missed += 1

    def snapshot(self, checks):
        """Run in a transaction with a single snapshot."""
        self.connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try:
            checks()
        finally:
            while self.connection.status != "I":
                try:
                    self.connection.query("ROLLBACK")
                except PgError:
                    pass        # cancelled

    def random_query(self):
        # A condition that an index can use, or an order that it gives.
        query = self.maker.plain()
        while query.limited or query.mode == "any" or not query.for_index:
            query = self.maker.plain()
        mode = query.mode

        def checks():
            answers = self.both(query.sql, mode)
            if answers is None:
                return
            expected, got = answers
            if sorted(expected, key=str) != sorted(got, key=str):
                raise Mismatch(f"query: {query.sql}\nmode: {mode}\n"
                               + difference(sorted(expected, key=str),
                                            sorted(got, key=str)))
        self.snapshot(checks)

    def whole_index(self):
        """The whole index forward and backward: complete, and in order."""
        columns = ", ".join(["ctid"] + self.layout.column_names())
        order = ", ".join(key.order() for key in self.layout.keys)
        back = ", ".join(key.order(True) for key in self.layout.keys)
        source = f"FROM {TABLE}{self.where}"

        def checks():
            query = self.connection.query
            query(THROUGH_TABLE)
            ranked = query(f"SELECT {columns}, dense_rank() OVER (ORDER BY"
                           f" {order}) {source}").rows
            query(THROUGH_INDEX["index"])
            self.need_index(f"SELECT {columns} {source} ORDER BY {order}")
            up = query(f"SELECT {columns} {source} ORDER BY {order}").rows
            down = query(f"SELECT {columns} {source} ORDER BY {back}").rows
            self.statistics.queries += 2
            self.compare_scans(ranked, up, down)
            names = self.layout.index_only_columns()
            if names:
                self.same_rows(f"SELECT {', '.join(names)} {source}", "only")
            # A condition that all rows meet, so that a bitmap is possible.
            self.same_rows(f"SELECT id {source} {'AND' if self.where else 'WHERE'}"
                           f" ({self.any_key()})", "bitmap")
        self.snapshot(checks)

    def any_key(self):
        """A condition on the first key that all rows meet, except nulls of a
        type whose nulls an index cannot search."""
        key = self.layout.keys[0]
        name = key.sql()
        if key.tests_null:
            return f"{name} IS NULL OR {name} IS NOT NULL"
        value = key.literal(self.rng)
        return (f"{name} {key.operator('<=')} {value} OR"
                f" {name} {key.operator('>')} {value}")

    def no_twins(self):
        """A unique index has accepted no key twice."""
        if not self.layout.unique or self.layout.twins() is None:
            return
        self.connection.query(THROUGH_TABLE)
        try:
            twins = self.connection.query(self.layout.twins()).rows
        except PgError as error:
            if not is_expected(error, self.layout):
                raise
            return              # a type that cannot be grouped
        if twins:
            raise Mismatch(f"{len(twins)} keys of a unique index are there "
                           f"several times: {self.layout.twins()}")

    def compare_scans(self, ranked, up, down):
        rank = {row[:-1]: int(row[-1]) for row in ranked}
        expected = sorted(rank, key=str)
        if expected != sorted(up, key=str):
            raise Mismatch("full scan of the index\n"
                           + difference(expected, sorted(up, key=str)))
        for before, after in zip(up, up[1:]):
            if rank[before] > rank[after]:
                raise Mismatch(f"out of order: {before} before {after}")
        if up != down[::-1]:
            raise Mismatch("backward scan is not the forward scan reversed\n"
                           + difference(up, down[::-1]))

    def same_rows(self, sql, mode):
        expected, got = self.both(sql, mode)
        expected.sort(key=str)
        got.sort(key=str)
        if expected != got:
            raise Mismatch(f"query: {sql}\nmode: {mode}\n"
                           + difference(expected, got))

    def own_rows(self, client):
        """The index finds the rows that this client has committed."""
        if self.layout.predicate:
            return
        self.connection.query(THROUGH_INDEX["index"])
        order = ", ".join(key.order() for key in self.layout.keys)
        sql = (f"SELECT id FROM {TABLE} WHERE id % {client.step} = "
               f"{client.number % client.step} ORDER BY {order}")
        self.need_index(sql)
        rows = self.connection.query(sql).rows
        found = sorted(int(row[0]) for row in rows)
        expected = sorted(client.alive)
        self.statistics.queries += 1
        if found != expected:
            raise Mismatch(
                f"client {client.number} has committed {len(expected)} rows and"
                f" finds {len(found)}; missing "
                f"{sorted(set(expected) - set(found))[:5]}, extra "
                f"{sorted(set(found) - set(expected))[:5]}, twice "
                f"{sorted({n for n in found if found.count(n) > 1})[:5]}")

    def slow_cursor(self):
        """A cursor that is read while others change rows, compared with its
        snapshot."""
        rng = self.rng
        names = self.layout.index_only_columns() or ["id"]
        mode = rng.choice(("index", "only"))
        columns = ", ".join(names)
        order = ", ".join(key.order() for key in self.layout.keys)

        def checks():
            query = self.connection.query
            query(THROUGH_INDEX[mode])
            query(f"DECLARE slow SCROLL CURSOR FOR SELECT {columns} FROM "
                  f"{TABLE}{self.where} ORDER BY {order}")
            rows = []
            while True:
                some = query(f"FETCH {rng.choice((1, 3, 20, 200))} FROM slow")
                rows += some.rows
                if not some.rows:
                    break
                if rng.random() < 0.3:
                    time.sleep(0.01)
            back = query("FETCH BACKWARD ALL FROM slow").rows
            if rows != back[::-1]:
                raise Mismatch(f"cursor over {columns} ({mode}), backward\n"
                               + difference(rows, back[::-1]))
            query(THROUGH_TABLE)
            expected = query(f"SELECT {columns} FROM {TABLE}{self.where}").rows
            self.statistics.fetches += 1
            rows.sort(key=str)
            expected.sort(key=str)
            if rows != expected:
                raise Mismatch(f"cursor over {columns} ({mode})\n"
                               + difference(expected, rows))
        self.snapshot(checks)


class Client:
    """Changes its own rows, and reads everybody's."""

    def __init__(self, owner, number, limits):
        self.owner = owner
        self.number = number
        self.step = owner.options.clients
        self.limits = limits
        self.rng = random.Random(owner.seed * 1000 + number)
        self.layout = copy.copy(owner.layout)
        self.layout.rng = self.rng
        self.layout.next_id = number
        self.layout.id_step = self.step
        self.connection = None
        self.alive = set()          # ids of committed rows
        self.pending = None         # the same, including the open transaction
        self.doubt = None           # None, "commit" or "prepare"

    def work(self):
        self.connection = self.owner.server.connect(
            log=self.owner.log.session(self.number))
        self.insist(SESSION)
        for statement in self.limits:
            self.insist(statement)
        checker = Checker(self.layout, self.connection, self.owner.statistics,
                          self.owner.legal)
        while not self.owner.stopping.is_set():
            kind = self.rng.random()
            try:
                if kind < 0.7:
                    self.transaction()
                elif kind < 0.85:
                    checker.random_query()
                elif kind < 0.93:
                    checker.own_rows(self)
                elif kind < 0.97:
                    checker.slow_cursor()
                else:
                    checker.whole_index()
            except PgError as error:
                if error.sqlstate != CANCELLED and not self.owner.legal(error):
                    raise
        self.connection.close()

    def transaction(self):
        """Some changes, then one of the ways to end a transaction."""
        rng = self.rng
        query = self.connection.query
        query(THROUGH_INDEX[rng.choice(tuple(THROUGH_INDEX))])
        self.pending = set(self.alive)
        self.owner.statistics.changes += 1
        try:
            query("BEGIN")
            for _ in range(rng.randint(1, 4)):
                if rng.random() < 0.3:
                    query("SAVEPOINT s")
                    kept = set(self.pending)
                    self.change()
                    if rng.random() < 0.5:
                        query("ROLLBACK TO s")
                        self.pending = kept
                else:
                    self.change()
            self.end()
        except PgError as error:
            if not self.owner.tolerates(error):
                raise
            self.doubt = None
            while self.connection.status != "I":
                self.insist("ROLLBACK")

    def insist(self, sql):
        """Run a statement that must not be given up when somebody cancels it,
        or while the server lacks something.
        """
        while True:
            try:
                return self.connection.query(sql)
            except PgError as error:
                if self.owner.legal(error):
                    time.sleep(0.02)
                elif error.sqlstate != CANCELLED:
                    raise

    def end(self):
        rng = self.rng
        query = self.connection.query
        kind = rng.random()
        if kind < 0.15:
            query("ROLLBACK")
            return
        if kind < 0.25:
            self.doubt = "prepare"
            query(f"PREPARE TRANSACTION 'client{self.number}'")
            if rng.random() < 0.2:
                self.insist(f"ROLLBACK PREPARED 'client{self.number}'")
                self.doubt = None
                return
            self.doubt = "commit prepared"
            self.insist(f"COMMIT PREPARED 'client{self.number}'")
        else:
            self.doubt = "commit"
            query("COMMIT")
        self.doubt = None
        self.alive = self.pending

    def change(self):
        rng = self.rng
        kind = rng.random()
        if self.layout.unique and kind < 0.1:
            first = self.layout.next_id
            rows = [self.layout.row_sql()
                    for _ in range(rng.choice((1, 1, 2, 10, 40)))]
            result = self.connection.query(
                f"INSERT INTO {TABLE} VALUES " + ", ".join(rows)
                + " ON CONFLICT DO NOTHING RETURNING id")
            self.pending |= {int(row[0]) for row in result.rows}
        elif kind < 0.35 or not self.pending:
            first = self.layout.next_id
            rows = [self.layout.row_sql()
                    for _ in range(rng.choice((1, 1, 2, 10, 40)))]
            self.connection.query(f"INSERT INTO {TABLE} VALUES "
                                  + ", ".join(rows))
            self.pending |= set(range(first, self.layout.next_id, self.step))
        elif kind < 0.5:
            first = self.layout.next_id
            lines = [self.layout.row_copy() for _ in range(rng.randint(20, 120))]
            self.connection.copy_in(f"COPY {TABLE} FROM STDIN", lines)
            self.pending |= set(range(first, self.layout.next_id, self.step))
        else:
            count = rng.choice((1, 1, 3, 20, 100))
            ids = rng.sample(sorted(self.pending),
                             min(count, len(self.pending)))
            listed = ", ".join(map(str, ids))
            if kind < 0.8:
                self.connection.query(f"DELETE FROM {TABLE} WHERE id IN"
                                      f" ({listed})")
                self.pending -= set(ids)
            elif kind < 0.95:
                column = rng.choice(self.layout.columns)
                value = column.type.literal(column.value(rng))
                self.connection.query(f"UPDATE {TABLE} SET {column.name} ="
                                      f" {value} WHERE id IN ({listed})")
            else:
                self.connection.query(f"UPDATE {TABLE} SET note = 'x', sel ="
                                      f" 5 WHERE id IN ({listed})")

    def resolve(self, connection):
        """After the end of the server: which of the transactions were
        committed?"""
        if self.doubt is None:
            return
        name = f"client{self.number}"
        prepared = connection.query("SELECT count(*) FROM pg_prepared_xacts"
                                    f" WHERE gid = '{name}'").scalar() == "1"
        if prepared:
            connection.query(f"COMMIT PREPARED '{name}'")
            self.alive = self.pending
        elif self.doubt == "commit prepared":
            self.alive = self.pending
        elif self.doubt == "commit":
            connection.query(THROUGH_TABLE)
            rows = connection.query(f"SELECT id FROM {TABLE} WHERE id % "
                                    f"{self.step} = {self.number % self.step}")
            if {int(row[0]) for row in rows.rows} == self.pending:
                self.alive = self.pending
        self.doubt = None


class Housekeeper:
    """VACUUM and similar commands, all the time."""

    def __init__(self, owner):
        self.owner = owner
        self.rng = random.Random(owner.seed * 1000 + 999)
        self.connection = None

    def tasks(self):
        """What it does, and how often."""
        tasks = [(f"VACUUM (INDEX_CLEANUP ON) {TABLE}", 20),
                 (f"VACUUM {TABLE}", 6), (f"VACUUM (FREEZE) {TABLE}", 2),
                 (f"ANALYZE {TABLE}", 2), ("CHECKPOINT", 3),
                 (f"REINDEX INDEX {LSM}", 0.5),
                 (f"REINDEX INDEX CONCURRENTLY {LSM}", 1),
                 # What canceled commands have left.
                 (f"DROP INDEX IF EXISTS {LSM}_ccnew, {LSM}_ccold", 0.5)]
        if self.owner.options.am == "lsm":
            tasks += [(f"SELECT lsm_check('{LSM}'::regclass)", 3),
                      (f"SELECT lsm_check('{LSM}'::regclass, true)", 2),
                      (f"SELECT count(*) FROM lsm_runs('{LSM}'::regclass)", 1)]
        return tasks

    def work(self):
        rng = self.rng
        connection = self.connection = self.owner.server.connect(log=self.owner.log.session(99))
        tasks = self.tasks()
        while not self.owner.stopping.is_set():
            task = rng.choices([t for t, _ in tasks], [w for _, w in tasks])[0]
            try:
                connection.query(task)
            except PgError as error:
                if not self.owner.tolerates(error):
                    raise Mismatch(f"{shorten(task)}: {error}") from error
            time.sleep(rng.choice((0, 0, 0.01, 0.1)))
        connection.close()


class Canceller:
    """Interrupts the others in the middle of their work, for instance merges.
    """

    def __init__(self, owner, victims):
        self.owner = owner
        self.victims = victims
        self.rng = random.Random(owner.seed * 1000 + 998)

    def work(self):
        connection = self.owner.server.connect()
        while not self.owner.stopping.is_set():
            victim = self.rng.choice(self.victims).connection
            if victim is not None and victim.pid:
                connection.query(f"SELECT pg_cancel_backend({victim.pid})")
            time.sleep(self.rng.choice((0.001, 0.005, 0.02, 0.1)))
        connection.close()
