"""Damage: what a server makes of damaged index files and of damaged WAL.

A round makes many small indexes of various shapes. Three times, it stops the
server, damages a page of each index, starts the server, and asks each index
many questions. Each fourth round cuts and alters WAL instead, and recovers.

Whatever was damaged: no process crashes, no assertion fails, no statement
takes longer than 20 s or runs out of memory, and errors have no internal code.

A damage that a checksum shows: each answer is right, or an error that says
that this index is corrupted.

Damages that no checksum shows: the page's checksum was mended, or the page is
open and has none, or is another page with a right checksum, or a record of the
WAL was altered and its checksum mended. A changed byte of a key may make
another valid key, so some answers may be wrong, and errors may come from the
functions of a type. But if an answer is wrong, lsm_check must find the damage.
(It need not find that a page is an older version of itself, or that a deletion
in the WAL was altered: entries that VACUUM removed may be there again, as in
any index with a lost write.)

WAL that was cut: recovery succeeds, and the index is sound.
"""

import os
import queue
import random
import re
import resource
import shutil
import subprocess
import threading

from compare import Mismatch, SqlLog
from damaged_indexes import SESSION, SETUP, Index, Query
from damaged_pages import Damager, IndexFile, read_pages
from damaged_wal import LSM_RMGR, SEGMENT, Wal, alter, cut
from pgwire import ConnectionLost, PgError
from server import Server, ServerFailed

INDEXES = 120           # of a round that damages pages
CYCLES = 3
WAL_INDEXES = 12
TRIALS = 16
THREADS = 2
MEMORY = 3 << 30        # address space of a process
SETTINGS = {
    "restart_after_crash": "off", "log_min_error_statement": "panic",
    "full_page_writes": "off", "checkpoint_timeout": "'1h'",
    "max_wal_size": "'1GB'", "max_locks_per_transaction": "256",
    "max_parallel_maintenance_workers": "0", "jit": "off",
    "client_min_messages": "error", "pg_lsm.max_workers": "0"}
CRASH = re.compile(r"PANIC:|TRAP:|was terminated by signal")
# Redo refuses a record: pg_lsm's, and PostgreSQL's own if a record names strange blocks.
REFUSALS = re.compile(r"pg_lsm: (cannot replay|unknown WAL record|WAL record is)|"
                      r"WAL contains references to invalid pages|"
                      r"failed to locate backup block|block with WILL_INIT flag in WAL record|"
                      r"page \d+ of relation \S+ (is uninitialized|does not exist)")
CORE_ERROR = re.compile(r"invalid page in block|could not (read|open file|access)|"
                        r"unexpected data beyond EOF")
# Out of time or memory, or a size that nobody has checked.
NEVER = re.compile(r"57014|53...|58...|.*invalid memory alloc request|.*pg_lsm:")


class DamagedServer(Server):
    def create(self):
        checksums = ["--no-data-checksums"] if self.version >= 18 else []
        super().create(f"--wal-segsize={SEGMENT >> 20}", *checksums)

    def configure(self, extra):
        super().configure(dict(SETTINGS, **extra))

    def _options(self):
        return dict(super()._options(), preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (MEMORY, MEMORY)))

    def wait_ready(self, seconds=60):
        return super().wait_ready(seconds)

    def path(self, name):
        return os.path.join(self.data, name)

    def copy_of(self, name):
        return os.path.join(self.directory, name)

    def save(self, name):
        """Copy the files of the stopped server."""
        subprocess.check_call(["cp", "-a", self.data, self.copy_of(name)])

    def restore(self, name):
        shutil.rmtree(self.data)
        subprocess.check_call(["cp", "-a", self.copy_of(name), self.data])

    def crashes(self):
        """Lines about crashes in the log since the last call."""
        lines = self.new_lines()
        panics = [line for line in lines if "PANIC:" in line]
        excused = panics and all(REFUSALS.search(line) for line in panics)
        if excused:
            lines = [line for line in lines
                     if "PANIC:" not in line and "signal 6" not in line]
        # The next line may say what the process was running.
        return [line for at, crash in enumerate(lines) if CRASH.search(crash)
                for line in lines[at:at + 2]]


class Round:
    def __init__(self, torture, seed):
        self.torture = torture
        self.rng = random.Random(seed)
        self.log = SqlLog()
        self.damages_wal = seed % 4 == 3
        self.faults = []
        server = DamagedServer(torture.options.pg_config)
        server.version = torture.version
        self.server = server
        self.servers = [server]
        self.indexes = [Index(number, random.Random(self.rng.random()))
                        for number in range(WAL_INDEXES if self.damages_wal else INDEXES)]

    def close(self):
        self.server.destroy()

    def run(self):
        self.server.create()
        connection = self.server.connect(log=self.log.session(1))
        connection.query("CREATE EXTENSION pg_lsm")
        connection.query(SETUP)
        for index in self.indexes:
            for sql in index.begin():
                connection.query(sql)
            index.path = connection.query(
                f"SELECT pg_relation_filepath('{index.name}')").scalar()
        connection.query("CHECKPOINT")
        if self.damages_wal:
            connection.close()
            self._damage_wal()
        else:
            self._damage_pages(connection)
        self._raise_faults()

    def _raise_faults(self):
        crashes = self.server.crashes()
        if crashes:
            self.faults.append("the server's log has:\n" + "\n".join(crashes[:10]))
        if self.faults:
            raise Mismatch(f"{len(self.faults)} faults\n" + "\n".join(self.faults[:6]))

    # --- pages

    def _damage_pages(self, connection):
        for index in self.indexes:
            index.older = read_pages(self.server.path(index.path))
        for index in self.indexes:
            for sql in index.go_on():
                connection.query(sql)
            index.asked = index.queries(index.rng) + [index.after_deletion()]
            index.asked[-1:-1] = [Query("ON CONFLICT", "", index.insertion(),
                                        index.insertion_count())]
            for query in index.asked:
                query.answer = connection.query(query.by_table).scalar()
        connection.close()
        self.server.stop()
        self.server.save("before")
        files = {i: IndexFile(self.server.path(i.path), i.older, i.has_tuples)
                 for i in self.indexes}
        damager = Damager(self.rng, list(files.values()))
        for cycle in range(CYCLES):
            if cycle:
                self.server.restore("before")
            work = queue.Queue()
            for index in self.indexes:
                damage = damager.damage(files[index])
                with open(files[index].path, "wb") as out:
                    out.write(damage.data)
                work.put((index, damage))
                self.torture.tally("damages", damage.kind, "cases")
            workers = 2 if self.rng.random() < 0.3 else 0
            self.server.configure({"pg_lsm.max_workers": str(workers)})
            self.server.start()
            self._judge_all(work)
            self.server.stop("immediate")
            if self.faults:
                return

    def _judge_all(self, work):
        def judge_some():
            try:
                connection = self.server.connect(timeout=60)
                connection.query(SESSION)
                while len(self.faults) < 20:
                    Judge(self, connection, *work.get_nowait()).judge_pages()
            except queue.Empty:
                connection.close()
            except (ConnectionLost, PgError) as error:
                self.faults.append(f"connection lost: {error}")

        threads = [threading.Thread(target=judge_some) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # --- WAL

    def _damage_wal(self):
        server = self.server
        server.stop()
        server.save("before")
        server.start()
        connection = server.connect(log=self.log.session(1))
        for index in self.rng.sample(self.indexes, len(self.indexes)):
            for sql in index.go_on():
                connection.query(sql)
            index.asked = index.queries(index.rng)
        server.kill()
        server.save("after")
        control = server.path("global/pg_control")
        wal = Wal(server.path("pg_wal"), self._checkpoint())
        ours = [r for r in wal.records if r.rmgr == LSM_RMGR]
        # No checksum protects tuples in an altered record (see damaged_pages.py).
        with_tuples = {int(os.path.basename(i.path)) for i in self.indexes if i.has_tuples}
        for record in ours:
            record.parse()
        alterable = [r for r in ours if not with_tuples.intersection(r.files)]
        for _ in range(TRIALS):
            server.restore("before")
            shutil.copy(os.path.join(server.copy_of("after"), "global/pg_control"), control)
            judged = self.rng.sample(self.indexes, 3)
            if self.rng.random() < 0.25 or not alterable:
                data, what = cut(self.rng, wal)
                trial = Trial(what, False)
            else:
                record = self.rng.choice(alterable)
                body, what = alter(self.rng, record)
                data = wal.altered(record, body)
                trial = Trial(what, True)
                judged += [i for i in self.indexes
                           if int(os.path.basename(i.path)) in record.files]
            wal.write(server.path("pg_wal"), data)
            self._recover(trial, judged)
            if self.faults:
                return

    def _checkpoint(self):
        """The position of the last checkpoint."""
        text = subprocess.check_output(
            [os.path.join(self.server.bindir, "pg_controldata"), self.server.data],
            text=True, env={"LC_ALL": "C"})
        high, low = re.search(r"checkpoint location: +(\w+)/(\w+)", text).groups()
        return int(high, 16) << 32 | int(low, 16)

    def _recover(self, trial, judged):
        self.torture.tally("damages", trial.kind, "cases")
        try:
            self.server.start()
        except ServerFailed as error:
            if self.server.process.poll() is None:
                self.faults.append(f"{trial.text}: no end of recovery: {error}")
                return
            self.server.process = None
            self.torture.count("WAL: recoveries that fail with an error")
            if not trial.mended:
                self.faults.append(f"{trial.text}: {error}")
        else:
            connection = self.server.connect(timeout=60)
            try:
                connection.query(SESSION)
                for index in dict.fromkeys(judged):
                    Judge(self, connection, index, trial).judge_recovered()
            except (ConnectionLost, PgError) as error:
                self.faults.append(f"{trial.text}: connection lost: {error}")
            self.server.stop("immediate")
        crashes = self.server.crashes()
        if crashes:
            self.faults.append("\n".join([trial.text] + crashes[:10]))


class Trial:
    """What was done to the WAL."""

    def __init__(self, text, mended):
        self.kind = "WAL, altered" if mended else "WAL, cut"
        self.text = text
        self.mended = mended
        # Entries that a deletion no longer names stay.
        self.is_stale = text.startswith("DELETE")


class Judge:
    """Asks one damaged index."""

    def __init__(self, of_round, connection, index, damage):
        self.torture = of_round.torture
        self.faults = of_round.faults
        self.connection = connection
        self.index = index
        self.damage = damage
        self.wrong = []
        self.reported = None

    def judge_pages(self):
        index = self.index
        *queries, insertion, after = index.asked
        for query in queries:
            self._ask(query)
        self._try("lsm_runs", f"SELECT count(*) FROM lsm_runs('{index.name}')")
        self._check()
        self._try("BEGIN", "BEGIN")
        self._ask(insertion)
        self._try("ROLLBACK", "ROLLBACK")
        delete = f"DELETE FROM {index.table} WHERE id % 7 = 0"
        if not self._try("DELETE", delete):
            self._try("VACUUM", f"VACUUM {index.table}")
            self._ask(after)
            self._try("lsm_compact", f"SELECT lsm_compact('{index.name}')")
            self._ask(after)
        self._check()
        self._compare()
        if self.reported:
            self._reindex(f"REINDEX INDEX {index.name}; {delete}", after)

    def judge_recovered(self):
        for query in self.index.asked:
            # Even for a scan of the table, the planner looks at the index.
            if not self._try("scan of the table", query.by_table):
                query.answer = self.result.scalar()
                self._ask(query)
        self._check()
        self._compare()

    def _reindex(self, sql, after):
        """REINDEX makes a sound index."""
        self.reported = None
        self._try("REINDEX", sql, must_work=True)
        self._ask(after)
        self._check()
        if self.reported or self.wrong:
            self._fault("after REINDEX", self.reported or self.wrong)

    def _check(self):
        """lsm_check raises an error if it finds something."""
        error = self._try("lsm_check", f"SELECT lsm_check('{self.index.name}', true)")
        self.reported = self.reported or error

    def _ask(self, query):
        error = self._try(query.what, query.sql)
        if error is None and self.result.scalar() != query.answer:
            self.wrong.append(f"{query.what}: {self.result.scalar()} "
                              f"instead of {query.answer}: {query.sql}")
        else:
            self._tally("errors" if error else "right answers")

    def _tally(self, what, n=1):
        self.torture.tally("damages", self.damage.kind, what, n)

    def _try(self, what, sql, must_work=False):
        """Run a statement. Return its error, which must be a permitted one."""
        try:
            self.result = self.connection.query(sql)
            return None
        except PgError as error:
            if must_work or not self._is_permitted(error):
                self._fault(what, error)
            return error
        except ConnectionLost as error:
            self._fault(f"{what}: connection lost", error)
            raise

    def _is_permitted(self, error):
        named = f'"{self.index.name}"' in error.message
        if error.sqlstate in ("XX001", "XX002"):
            return named or CORE_ERROR.search(error.message)
        # Another format version, or an empty file, which may be an index under construction.
        if named and error.sqlstate in ("0A000", "55000"):
            return True
        return self.damage.mended and (CORE_ERROR.search(error.message)
                                       or not NEVER.match(str(error)))

    def _compare(self):
        """Wrong answers are permitted only if lsm_check finds the damage, and no checksum could."""
        self._tally("wrong, lsm_check finds it" if self.reported else "wrong, lsm_check does not", len(self.wrong))
        if self.wrong and not (self.damage.mended and (self.reported or self.damage.is_stale)):
            self._fault("wrong answers, lsm_check says "
                        f"{self.reported or 'nothing'}", "\n".join(self.wrong[:3]))
        if self.reported and self.damage.kind == "WAL, cut":
            self._fault("lsm_check", self.reported)
        self.wrong = []

    def _fault(self, what, error):
        self.faults.append(f"{self.index.describe()}\n  {self.index.path}, "
                           f"{self.damage.text}\n  {what}: {error}")
