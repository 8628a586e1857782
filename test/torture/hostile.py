"""Hostile functions: operator classes, hash functions and expressions that fail, sleep, recurse, allocate, lie, write,
change the table that they serve, grab privileges, or end their process.

Three sessions run random statements, and workers merge, while the functions of hostile.sql misbehave as the setting
hostile.mood says. Whatever a function does, its statement must end with an error or the right answer, and be
cancelable. Nobody may gain rights, and the session must stay usable. Then the functions become honest again. If they
have not lied, the index must be correct. If they have, lsm_check must find any damage, and REINDEX must repair it.
Finally, the table and a twin with a B-tree must give the same answers to the same statements.
"""

import os
import random
import re
import resource
import signal
import time

from compare import Mismatch
from hostile_statements import SLOW, TIMEOUT, VARIANTS, Session, Statements, twin_of
from pgwire import ConnectionLost, PgError
from server import Server

HERE = os.path.dirname(os.path.abspath(__file__))
ACT = 2.5               # seconds that a mood lasts
GRACE = 8               # seconds in which a canceled statement must end, on a busy machine
MEMORY = 800 << 20      # address space of each process

LIES = ("random", "reverse", "zero", "one", "least", "cycle", "drift")
DEEDS = ("error", "caught", "nth", "null", "sleep", "sleep", "spin", "recurse", "allocate", "extremes", "write",
         "insert-self", "select-self", "select-cross", "insert-cross", "lock", "drop", "drop-index", "alter",
         "set-fillfactor", "truncate", "reindex", "create-index", "compact", "check", "vacuum", "rob", "rob",
         "checkpoint", "terminate", "cancel", "commit", "gone", "replace") + LIES
# Deeds after which the table or index may be a different one.
CHANGES = ("drop", "drop-index", "alter", "truncate", "create-index")
# Internal errors that result from what the deeds do to the catalogs.
INTERNAL = re.compile(r"returned NULL|cache lookup failed for|could not open relation with OID|"
                      r"tuple concurrently (updated|deleted)|during a parallel operation")
LEAKS = re.compile(r"WARNING:.*(leak|not closed|still referenced|not released|don't own|you don't|"
                   r"unexpected|AbortTransaction|SPI)")
GAINED = re.compile(r"hostile: gained")


class Round:
    def __init__(self, torture, seed):
        self.torture = torture
        self.rng = random.Random(seed)
        self.server = Server(torture.options.pg_config)
        self.servers = [self.server]
        self.name = self.rng.choice(sorted(VARIANTS))
        self.variant = VARIANTS[self.name]
        self.unique = self.rng.random() < 0.4
        self.deed = self.mood = ""
        self.deadline = 0
        self.log_read = 0
        self.statements = Statements(self.rng, self.unique)
        self.admin = None
        self.settings = {
            "jit": "off", "max_stack_depth": "'500kB'", "restart_after_crash": "off", "deadlock_timeout": "'200ms'",
            "min_parallel_table_scan_size": "0", "min_parallel_index_scan_size": "0",
            "parallel_setup_cost": self.rng.choice(("0", "1000")), "autovacuum": self.rng.choice(("on", "off")),
            "autovacuum_naptime": "1", "autovacuum_vacuum_threshold": "20", "autovacuum_vacuum_scale_factor": "0",
            "pg_lsm.debug_buffer_entries": self.rng.choice(("0", "20")),
            "pg_lsm.debug_page_entries": self.rng.choice(("0", "8")),
            "pg_lsm.debug_foreground_blocks": self.rng.choice(("8", "128"))}

    # -- the server -------------------------------------------------------------

    def connect(self, role="postgres"):
        return self.server.connect(user=role, timeout=60)

    def query(self, sql):
        return self.admin.query(sql)

    def fill(self, sql):
        return self.variant.fill(sql, "h.t")

    def start(self):
        limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limit[1]))
        try:
            self.server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limit)
        self.admin = self.connect()
        self.query("SET hostile.mood = ''")

    def set_mood(self, mood):
        """Set the mood of all processes except the administrator's session."""
        self.mood = mood
        self.server.configure(dict(self.settings, **{"hostile.mood": f"'{mood}'"}))
        os.kill(self.server.process.pid, signal.SIGHUP)

    def create_tables(self):
        variant = self.variant
        for table in ("t", "u"):
            self.query(f"DROP TABLE IF EXISTS h.{table}; CREATE TABLE h.{table} (id int, k {variant.column}); "
                       f"ALTER TABLE h.{table} OWNER TO villain; "
                       + variant.fill("INSERT INTO {t} SELECT i, <i * 7> FROM generate_series(1, 80) i",
                                      f"h.{table}"))
            self.query(variant.create(table, "lsm", self.unique and table == "t"))

    # -- faults -----------------------------------------------------------------

    def fault(self, text):
        return Mismatch(f"{self.name}{' unique' if self.unique else ''}, mood '{self.mood or self.deed}': {text}\n"
                        + self.server.log_tail())

    def lies(self):
        """Have the functions lied to the index?"""
        place = self.mood.split(" ")[0]
        return (self.deed in LIES and place != "op" or
                self.deed == "extremes" and place in ("expr", "pred", "hash") or
                # Core's comparison of arrays treats NULL as 0.
                self.deed == "null" and (place in ("expr", "pred") or self.name == "array"))

    def judge(self, error):
        if error.sqlstate[:2] != "XX":
            return
        if error.sqlstate == "XX000":
            if INTERNAL.search(error.message):
                return
        elif self.lies() or self.deed == "check" and "lacks matching index tuple" in error.message:
            return      # that check saw a row whose entry was not there yet
        raise self.fault(f"{error}\nstatement: {error.sql}")

    def judge_lost(self, error, connection):
        connection.close()
        if self.server.process.poll() is not None:
            raise self.fault(f"the server is gone: {error}")
        if self.deed != "terminate":
            raise self.fault(f"connection lost: {error}")

    def read_log(self):
        alarms = self.server.alarms()
        with open(self.server.log, encoding="utf-8", errors="replace") as file:
            file.seek(self.log_read)
            lines = file.readlines()
            self.log_read = file.tell()
        alarms += [line.rstrip() for line in lines
                   if LEAKS.search(line) or GAINED.search(line)]
        if alarms:
            raise self.fault("the server log contains:\n" + "\n".join(alarms[:20]))

    # -- acts -------------------------------------------------------------------

    def run(self):
        self.server.create()
        self.server.stop()
        self.server.configure(self.settings)
        self.start()
        with open(os.path.join(HERE, "hostile.sql"), encoding="utf-8") as file:
            self.query(file.read())
        self.query("SET search_path = h, public")
        self.scan("seq")
        twin = twin_of(self.variant)
        self.query("CREATE TABLE h.w (id int, k int)")
        self.query(twin.create("w", "btree", self.unique))
        self.create_tables()
        for _ in range(self.rng.randint(2, 4)):
            self.act()
            self.recover()
            self.compare(twin)
        if self.rng.random() < 0.5:
            self.stop_asleep()
            self.compare(twin)

    def act(self):
        rng = self.rng
        self.deed = rng.choice(DEEDS)
        place = rng.choice(self.variant.places)
        self.deadline = time.monotonic() + ACT
        self.torture.count(f"wrong functions: {place} {self.deed}")
        if self.deed == "gone":
            self.query("DELETE FROM pg_proc WHERE oid IN (SELECT oid FROM functions ORDER BY random() LIMIT 3) "
                       "AND proname <> 'act'")
        elif self.deed != "replace":
            self.set_mood(f"{place} {self.deed} {rng.choice((1, 5, 30, 200))}")
        sessions = [Session(self, role, number)
                    for number, role in enumerate(("villain", "villain", "postgres"))]
        for session in sessions:
            session.start()
        while any(session.is_alive() for session in sessions):
            for session in sessions:
                self.watch(session)
            if self.deed == "replace":
                self.replace()
            time.sleep(0.05)
        for session in sessions:
            if session.failure is not None:
                raise session.failure
        self.check_sessions(sessions)

    def replace(self):
        """Replace the bodies of functions with equivalent ones."""
        for old, new in (("num_cmp(a h.num, b h.num) RETURNS int", "btint4cmp(a.v, b.v)"),
                         ("int_cmp(a int, b int) RETURNS int", "btint4cmp(a, b)"),
                         ("num_hash(a h.num) RETURNS int", "hashint4(a.v)"), ("expr(a int) RETURNS int", "a"),
                         ("pred(a int) RETURNS bool", "a % 3 <> 1")):
            language, body = self.rng.choice((("sql", f"SELECT {new}"), ("plpgsql", f"BEGIN RETURN {new}; END")))
            if self.name == "array":    # core caches the elements' functions, and would crash
                language, body = "plpgsql", f"BEGIN RETURN {new}; END"
            self.query(f"CREATE OR REPLACE FUNCTION h.{old} LANGUAGE {language} IMMUTABLE STRICT "
                       f"PARALLEL SAFE AS '{body}'")

    def watch(self, session):
        """Cancel a statement that takes too long, and make sure that it ends."""
        current, now = session.current, time.monotonic()
        if current is None:
            return
        serial, sql, started = current
        if session.timeout:
            session.canceled = (serial, started + TIMEOUT)
        elif session.canceled[0] != serial and now - started > (0.4 if self.deed in SLOW else 4):
            self.query(f"SELECT pg_cancel_backend({session.connection.pid})")
            session.canceled = (serial, now)
        if session.canceled[0] == serial and now - session.canceled[1] > GRACE:
            states = self.query("SELECT pid, backend_type, wait_event, state, left(query, 60) FROM pg_stat_activity "
                                "WHERE state IS DISTINCT FROM 'idle' ORDER BY pid").rows
            raise self.fault(f"process {session.connection.pid} ignores a cancel request: {sql}\n"
                             + "\n".join(map(str, states)))

    def check_sessions(self, sessions):
        """The sessions must be usable, and hold no locks."""
        for session in sessions:
            if session.connection.status != "I":
                session.send("ROLLBACK")
            session.connection.query("SET hostile.mood = ''; SET statement_timeout = 0")
            session.connection.query(self.fill("SELECT 1"))
            locks = self.query("SELECT locktype, relation::regclass, mode FROM pg_locks WHERE locktype <> 'virtualxid' "
                               f"AND pid = {session.connection.pid}").rows
            if locks:
                raise self.fault(f"an idle session holds locks: {locks}")
            user = session.connection.query("SELECT session_user || ' ' || current_user, (SELECT count(*) FROM "
                                            "pg_class WHERE relname = 'loot' AND pg_table_is_visible(oid))").rows[0]
            if session.role == "postgres" and user != ("postgres postgres", "0"):
                raise self.fault(f"a superuser's session was left with {user}")
            session.connection.close()

    def recover(self):
        """Make the functions honest again. Then check the index, and repair it if they have lied."""
        if self.deed in ("gone", "replace"):
            self.query("DELETE FROM pg_proc WHERE oid IN (SELECT oid FROM functions); "
                       "INSERT INTO pg_proc SELECT * FROM functions")
        lies = self.lies()
        self.set_mood("")
        self.end_workers()
        for name, in self.query("SELECT gid FROM pg_prepared_xacts").rows:
            self.query(f"ROLLBACK PREPARED '{name}'")
        for name, in self.query("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid").rows:
            self.query(f"DROP INDEX {name}")
        self.read_log()
        if self.query("SELECT to_regclass('h.t') IS NULL").scalar() == "t":
            self.create_tables()
            if self.deed != "drop":
                raise self.fault("the table is gone")
        if self.query("SELECT to_regclass('h.t_k') IS NULL").scalar() == "t":
            self.remove_duplicates("h.t")
            self.query(self.variant.create("t", "lsm", self.unique))
            if self.deed != "drop-index":
                raise self.fault("the index is gone")
        for index, table in self.query("SELECT indexrelid::regclass, indrelid::regclass FROM pg_index "
                                       "WHERE indrelid IN ('h.t'::regclass, 'h.u'::regclass)").rows:
            self.check(index, table, lies)

    def check(self, index, table, lies):
        try:
            self.query(f"SELECT lsm_check('{index}', true)")
            if not lies or self.variant.where == "true":
                return
            # No check finds entries of rows that a partial index should not have.
        except PgError as error:
            if not lies or error.sqlstate not in ("XX001", "XX002"):
                raise self.fault(f"lsm_check: {error}") from error
        self.torture.count("damage by lies found and repaired")
        self.remove_duplicates(table)
        self.query(f"REINDEX INDEX {index}")
        self.query(f"SELECT lsm_check('{index}', true)")

    def remove_duplicates(self, table):
        """Without its index, or with one that was lied to, a table may have got some."""
        if self.unique:
            self.query(self.variant.fill("DELETE FROM {t} a USING {t} b WHERE a.ctid > b.ctid AND a.k = b.k", table))

    def end_workers(self):
        """Workers that still have the old mood must end when they are asked to."""
        chosen = "FROM pg_stat_activity WHERE backend_type IN ('pg_lsm worker', 'autovacuum worker')"
        pids = ", ".join(row[0] for row in self.query(f"SELECT pid {chosen}").rows) or "0"
        self.query(f"SELECT pg_terminate_backend(pid) {chosen} AND pid IN ({pids})")
        deadline = time.monotonic() + GRACE
        while self.query(f"SELECT count(*) {chosen} AND pid IN ({pids})").scalar() != "0":
            if time.monotonic() > deadline:
                states = self.query(f"SELECT pid, backend_type, wait_event, query {chosen}").rows
                raise self.fault(f"workers do not end: {states}")
            time.sleep(0.05)

    def stop_asleep(self):
        """A fast shutdown must succeed while functions sleep."""
        self.deed = "sleep"
        self.set_mood(f"{self.rng.choice(self.variant.places)} sleep 50")
        sleeper = self.connect("villain")
        sleeper.query("SET search_path = h, public")
        sleeper.start(self.fill("INSERT INTO {t} (id, k) SELECT i, <i> FROM generate_series(1000, 1900) i"))
        time.sleep(1)
        before = time.monotonic()
        self.server.stop()
        if time.monotonic() - before > GRACE:
            raise self.fault(f"the shutdown took {time.monotonic() - before:.0f} s")
        self.mood = self.deed = ""
        self.server.configure(self.settings)
        self.start()
        self.query("SET search_path = h, public")
        self.scan("seq")
        self.recover()

    # -- comparing --------------------------------------------------------------

    def compare(self, twin):
        """Run the same statements on the table and on its twin, and compare the results."""
        self.scan("seq")
        self.query(f"TRUNCATE h.w; INSERT INTO h.w SELECT id, {self.variant.plain} FROM h.t")
        for _ in range(8):
            sql = self.statements.change()
            self.same(sql, [self.attempt(side.fill(sql, table))
                            for side, table in ((self.variant, "h.t"), (twin, "h.w"))])
        for _ in range(10):
            sql = self.statements.question()
            answers = []
            for side, table, way in ((self.variant, "h.t", "seq"), (self.variant, "h.t", "index"),
                                     (twin, "h.w", "index")):
                self.scan(way)
                answers.append(self.query(side.fill(sql, table)).rows)
            self.same(sql, answers)
            self.torture.count("answers compared after wrong functions")
        self.scan("seq")
        self.query("SELECT lsm_check('h.t_k', true)")
        self.read_log()

    def scan(self, way):
        seqscan, others = ("on", "off") if way == "seq" else ("off", "on")
        self.query(f"SET enable_seqscan = {seqscan}; SET enable_indexscan = {others}; "
                   f"SET enable_indexonlyscan = {others}; SET enable_bitmapscan = {others}")

    def attempt(self, sql):
        try:
            return self.query(sql).tag
        except PgError as error:
            return error.sqlstate

    def same(self, sql, answers):
        if any(answer != answers[0] for answer in answers):
            raise self.fault(f"{sql}\n" + "\n".join(str(answer)[:500] for answer in answers))

    def close(self):
        self.server.destroy()
