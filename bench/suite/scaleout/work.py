"""Loads a site, measures it, and takes the digests of its answers."""

import hashlib
import subprocess
import threading
import time

from .. import BenchError, stats

KEYS = 300                  # of the statements that look up keys
WHOLE_TABLE = 2_000_000     # up to so many rows, the digest covers all of them in order
SMALL, LARGE = -(1 << 31), (1 << 31) - 1


def digest(server, sql):
    """(rows, hash) of the rows of a statement, in their order, without keeping them in memory."""
    process = subprocess.Popen([server.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "FETCH_COUNT=10000",
                                "-d", server.conninfo(), "-c", sql], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows, total = 0, hashlib.sha1()
    for line in process.stdout:
        rows += 1
        total.update(line)
    message = process.stderr.read().decode().strip()
    process.stdout.close()
    process.stderr.close()
    if process.wait() != 0:
        raise BenchError("%s\n%s" % (message, sql))
    return rows, total.hexdigest()[:12]


def compare(expected, answers, method):
    """Lines that say which answers differ."""
    return ["%s: %s: %d rows, digest %s on one server; %d rows, digest %s on several" % (
        (method, title) + expected[title] + answers.get(title, (0, "none")))
        for title in expected if answers.get(title) != expected[title]]


class Work:
    def __init__(self, site, engine, client, options, say):
        self.site, self.engine, self.client, self.options, self.say = site, engine, client, options, say
        self.figures = {}
        self.copied = self.inserted = 0

    # --- loads

    def load(self, copied, inserted):
        """Loads rows by COPY, then rows by INSERT. Returns how many there are of each."""
        if copied:
            self.say("COPY of %s rows" % format(copied, ","))
            with self.site.used() as use:
                report = self.client.call("load", {
                    "k": "int4_random", "r": copied, "b": self.options.batch, "c": self.options.clients,
                    "t": self.options.limit, "e": max(copied // 20, 1000)}, self.site.front.conninfo(), "t")
            self.copied = int(report.value("load", "rows"))
            self.figures["COPY, rows/s"] = self.copied / report.value("load", "seconds")
            samples = [(int(s[1]), float(s[2])) for s in report.samples]
            self.figures["COPY, last tenth, rows/s"] = stats.last_tenth(samples)
            self._record_use("COPY", "row", self.copied, use)
        if inserted:
            self.say("INSERT of %s rows" % format(inserted, ","))
            self.inserted = inserted
            with self.site.used() as use:
                self._insert(inserted)
            self.figures["INSERT, rows/s"] = inserted / use.seconds
            self._record_use("INSERT", "row", inserted, use)
        self.figures["rows"] = self.copied + self.inserted
        self._record_sizes()
        return self.copied, self.inserted

    def _insert(self, rows):
        """Statements of many rows, each a transaction, from several connections."""
        statements = [[] for _ in range(self.options.clients)]
        for number, first in enumerate(range(0, rows, self.options.batch)):
            last = min(first + self.options.batch, rows) - 1
            statements[number % len(statements)].append(self.engine.insert_sql.format(first, last) + ";")
        errors = []

        def send(texts):
            try:
                self.site.front.query("\n".join(texts))
            except BenchError as error:
                errors.append(error)
        threads = [threading.Thread(target=send, args=(texts,)) for texts in statements]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _record_use(self, what, unit, count, use):
        """CPU, WAL and disk for each row or operation: of the front server, and of all nodes together."""
        front, nodes = self.site.front.name, [node.name for node in self.site.nodes]
        if front not in nodes:
            self.figures["%s, CPU of the coordinator, us/%s" % (what, unit)] = use.cpu[front] / count * 1e6
        cpu = [use.cpu[name] for name in nodes]
        self.figures["%s, CPU of the nodes, us/%s" % (what, unit)] = sum(cpu) / count * 1e6
        if len(nodes) > 1:
            self.figures["%s, CPU of the busiest node / average" % what] = max(cpu) / max(sum(cpu) / len(cpu), 1e-9)
        if unit == "row":
            self.figures["%s, WAL, bytes/row" % what] = sum(use.wal.values()) / count
            if sum(use.written.values()):
                self.figures["%s, written, bytes/row" % what] = sum(use.written.values()) / count
        self.figures["%s, read, bytes/%s" % (what, unit)] = sum(use.read.values()) / count

    def _record_sizes(self):
        sql = ("SELECT sum(pg_relation_size(indexrelid)) FROM pg_index JOIN pg_class c ON c.oid = indrelid "
               "WHERE c.relname ~ '^t(_[0-9]+)?$' AND c.relkind = 'r';")
        sizes = [int(node.query(sql, **self.engine.session) or 0) for node in self.site.nodes]
        self.figures["index, MB/node"] = sum(sizes) / len(sizes) / 1e6
        if self.options.memory:
            self.figures["index / memory of a node"] = sum(sizes) / len(sizes) / (self.options.memory << 20)
        if len(sizes) > 1:
            self.figures["index, largest node / average"] = max(sizes) / (sum(sizes) / len(sizes))

    # --- queries

    def queries(self):
        """Rates of lookups and ranges, as the load has left the indexes, and the seconds of a total."""
        self.say("VACUUM and ANALYZE")
        self.engine.analyze(self.site)
        # Most rows are of one kind; the keys that are looked up are of this kind.
        if self.copied >= self.inserted:
            kind, rows, lookup = "int4_random", self.copied, self.engine.lookup_sql
        else:
            kind, rows, lookup = "int4_seq", self.inserted, self.engine.lookup_made_sql
        total = self.copied + self.inserted
        for name, mode, more in (("lookups", "lookup", {"q": lookup}),
                                 ("ranges of 100 rows", "range", {"q": self.engine.range_sql, "p": 100.0 / total})):
            self.say(name)
            options = dict({"k": kind, "r": rows, "t": self.options.seconds, "w": self.options.seconds / 5}, **more)
            with self.site.used() as use:
                report = self.client.call("run", options, self.site.front.conninfo(), "t",
                                          "%s:%d" % (mode, self.options.clients))
            self.figures["%s/s" % name] = report.value(mode, "rate")
            self.figures["%s, median, ms" % name] = report.value(mode, "p50_us") / 1000
            # The warm-up is not counted as operations, but its CPU is in `use`.
            self._record_use(name, "one", report.value(mode, "ops") * 1.2, use)

    # --- answers

    def _parameters(self):
        step = (1 << 32) // max((self.copied + self.inserted) // 2000, 1)
        middle = 1_000_000_000
        found = [int(key) for key in self.site.nodes[0].query(
            "SELECT hashint4(i * 7) FROM generate_series(0, %d) i;" % (KEYS - 1)).split()]
        return {"keys": "'{%s}'::int4[]" % ",".join(map(str, found)),
                "absent": "'{%s}'::int4[]" % ",".join(str(i * 7_153_321 - 1_000_000_000) for i in range(KEYS)),
                "low": str(middle), "high": str(min(middle + step, LARGE)), "f_low": "'3a'", "f_high": "'3a2'"}

    def answers(self):
        """{title: (rows, digest)}"""
        self.say("answers")
        parameters = self._parameters()
        queries = self.engine.queries(self.site)
        answers = {}
        for title, sql in queries.items():
            begin = time.monotonic()
            answers[title] = digest(self.site.front, sql.format(**parameters))
            if title == "totals":
                self.figures["total of the table, s"] = time.monotonic() - begin
        share = min(WHOLE_TABLE / max(self.copied + self.inserted, 1), 1)
        parameters.update(low=str(SMALL), high=str(int(SMALL + share * (LARGE - SMALL))))
        title = "all rows in order" if share == 1 else "the first %.0f %% of all rows in order" % (share * 100)
        begin = time.monotonic()
        answers[title] = digest(self.site.front, queries["range in order"].format(**parameters))
        self.figures["%s, rows/s" % title.replace("the ", "")] = answers[title][0] / (time.monotonic() - begin)
        return answers
