"""The client of demo.sh: loads lineitem into two tables, compares the answers, and prints the figures.

Talks to the server through psql, so it needs only Python's own library. Exit status: 0, or 1 after an error,
or 3 if the two indexes gave different answers.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import threading
import time

METHODS = ("btree", "lsm")

TABLE = """
CREATE TABLE lineitem_{m} (
    l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL, l_linenumber integer NOT NULL,
    l_quantity numeric NOT NULL, l_extendedprice numeric NOT NULL, l_discount numeric NOT NULL, l_tax numeric NOT NULL,
    l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
    l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL,
    l_comment varchar(44) NOT NULL);
CREATE INDEX lineitem_{m}_order ON lineitem_{m} USING {m} (l_orderkey, l_linenumber);
CREATE INDEX lineitem_{m}_date ON lineitem_{m} USING {m} (l_shipdate);
"""

POINT_KEYS = 10000
PROGRESS_S = 5.0

started = time.monotonic()


class DemoError(Exception):
    pass


class Different(DemoError):
    """The two indexes gave different answers."""


def step(text):
    print("[%4d s] %s" % (time.monotonic() - started, text), flush=True)


class Server:
    def __init__(self, options):
        self.command = [options.psql, "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", options.host,
                        "-p", str(options.port), "-U", "postgres", "-d", "demo"]

    def run(self, sql, output=None):
        """Runs SQL in one session and returns what it printed; writes it to the file `output` instead if given."""
        result = subprocess.run(self.command + ["-q", "-f", "-"], input=sql.encode(), stderr=subprocess.PIPE,
                                stdout=output or subprocess.PIPE)
        if result.returncode != 0:
            raise DemoError("a query failed: %s\n%s" % (result.stderr.decode().strip(), sql.strip()))
        return None if output else result.stdout.decode().strip()

    def number(self, sql):
        return float(self.run(sql))


# --- loading -----------------------------------------------------------------


class Progress:
    """A line about the load: rewritten in place on a terminal, else printed every few seconds."""

    def __init__(self, label, total):
        self.label, self.total = label, total
        self.terminal = sys.stdout.isatty()
        self.interval = 0.25 if self.terminal else PROGRESS_S
        self.begin = self.last_time = time.monotonic()
        self.last_rows = 0

    def show(self, rows, final=False):
        now = time.monotonic()
        if not final and now - self.last_time < self.interval:
            return
        elapsed = max(now - self.begin, 1e-6)
        recent = (rows - self.last_rows) / max(now - self.last_time, 1e-6)
        eta = (self.total - rows) / (rows / elapsed) if rows else 0
        line = "         %-6s %11s rows %5.1f%% %9s rows/s" % (
            self.label, format(rows, ","), 100.0 * rows / self.total, format(int(rows / elapsed if final else recent), ","))
        line += "   in %.1f s" % elapsed if final else "   %d s to go" % eta
        if self.terminal:
            print("\r%s\033[K" % line, end="\n" if final else "", flush=True)
        else:
            print(line, flush=True)
        self.last_time, self.last_rows = now, rows


def load(server, table, label, data, total, batch):
    """Loads a file by COPY, `batch` lines per transaction. Returns the figures."""
    psql = subprocess.Popen(server.command + ["-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    head = ("COPY %s FROM STDIN WITH (DELIMITER '|');\n" % table).encode()
    errors = []

    def feed():
        try:
            with open(data, "rb") as lines:
                while True:
                    chunk = b"".join(itertools.islice(lines, batch))
                    if not chunk:
                        break
                    psql.stdin.write(head + chunk + b"\\.\n")
            psql.stdin.close()
        except BrokenPipeError:
            pass                        # psql has failed and says why

    def complain():
        errors.append(psql.stderr.read().decode().strip())

    threads = [threading.Thread(target=feed, daemon=True), threading.Thread(target=complain, daemon=True)]
    progress = Progress(label, total)
    begin = last = time.monotonic()
    times = [(0, begin)]
    rows = 0
    worst_s = 0.0
    for thread in threads:
        thread.start()
    for line in psql.stdout:            # "COPY 1000" for each transaction
        now = time.monotonic()
        rows += int(line.split()[1])
        worst_s = max(worst_s, now - last)
        last = now
        times.append((rows, now))
        progress.show(rows)
    for thread in threads:
        thread.join()
    if psql.wait() != 0 or rows != total:
        raise DemoError("the load of %s stopped after %d of %d rows: %s" % (table, rows, total, "".join(errors)))
    progress.show(rows, final=True)
    tail_rows, tail_time = next((r, t) for r, t in times if r >= total * 0.9 or r == total)
    if tail_rows == total:
        tail_rows, tail_time = 0, begin
    return {"seconds": last - begin, "rate": total / (last - begin), "worst_ms": worst_s * 1000,
            "tail_rate": (total - tail_rows) / (last - tail_time)}


# --- queries -----------------------------------------------------------------


class Query:
    """A query with {t} for the table. Its plan must have a `node` that scans the index lineitem_<method>_<index>."""

    def __init__(self, name, index, node, sql, unit_rows=None, settings=()):
        self.name, self.index, self.node, self.sql = name, index, node, sql
        self.unit_rows = unit_rows      # lookups in one execution, for figures per lookup
        self.settings = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_hashagg") + tuple(settings)

    def prepare(self):
        return "".join("SET %s = off;\n" % name for name in self.settings) + "SET max_parallel_workers_per_gather = 0;\n"

    def text(self, method):
        return self.sql.format(t="lineitem_" + method)


def queries(first_key, last_key):
    middle = (first_key + last_key) // 2
    span = max((last_key - first_key) // 50, 1)
    full_order = "ORDER BY l_orderkey, l_linenumber"
    by_date = "ORDER BY l_shipdate, l_orderkey, l_linenumber"
    no_bitmap = ("enable_bitmapscan",)
    return [
        Query("point lookups", "order", "Index Scan",
              "SELECT k.n, l.* FROM demo_keys k LEFT JOIN {t} l"
              " ON l.l_orderkey = k.o AND l.l_linenumber = k.l ORDER BY k.n", POINT_KEYS,
              no_bitmap + ("enable_material", "enable_memoize")),
        Query("range of orders", "order", "Index Scan",
              "SELECT * FROM {t} WHERE l_orderkey BETWEEN %d AND %d %s" % (middle, middle + span, full_order),
              settings=no_bitmap),
        Query("range of dates", "date", "Index Scan",
              "SELECT * FROM {t} WHERE l_shipdate BETWEEN '1995-03-01' AND '1995-03-14' %s" % by_date,
              settings=no_bitmap),
        Query("same, by bitmap", "date", "Bitmap Index Scan",
              "SELECT * FROM {t} WHERE l_shipdate BETWEEN '1995-03-01' AND '1995-03-14' %s" % by_date,
              settings=("enable_indexscan",)),
        Query("first 50,000 in order", "order", "Index Scan",
              "SELECT * FROM {t} %s LIMIT 50000" % full_order, settings=no_bitmap),
        Query("last 50,000, backward", "order", "Index Scan",
              "SELECT * FROM {t} ORDER BY l_orderkey DESC, l_linenumber DESC LIMIT 50000", settings=no_bitmap),
        Query("rows per day, all", "date", "Index Only Scan",
              "SELECT l_shipdate, count(*) FROM {t} GROUP BY l_shipdate ORDER BY l_shipdate", settings=no_bitmap),
    ]


def scans(plan):
    """Yields (node type, index name) of all index scans in a plan."""
    if "Index Name" in plan:
        yield plan["Node Type"], plan["Index Name"]
    for child in plan.get("Plans", ()):
        yield from scans(child)


def measure(server, query, method):
    """Returns the milliseconds of the fastest of three executions, all of which must use the index."""
    wanted = (query.node, "lineitem_%s_%s" % (method, query.index))
    explain = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) %s;\n" % query.text(method)
    text = server.run(query.prepare() + "\\echo [\n" + "\\echo ,\n".join([explain] * 3) + "\\echo ]\n")
    best = None
    for result in json.loads(text):
        if wanted not in list(scans(result[0]["Plan"])):
            raise DemoError("\"%s\" did not use a %s on %s:\n%s" % (
                query.name, wanted[0], wanted[1], json.dumps(result[0]["Plan"], indent=1)))
        best = min(best or 1e18, result[0]["Execution Time"])
    return best


def compare(server, query, work):
    """Compares the answers from both tables line by line. Returns the number of rows."""
    names = []
    for method in METHODS:
        names.append(os.path.join(work, "answer_" + method))
        with open(names[-1], "wb") as output:
            server.run(query.prepare() + "COPY (%s) TO STDOUT;\n" % query.text(method), output)
    count = 0
    with open(names[0], "rb") as left, open(names[1], "rb") as right:
        for count, (a, b) in enumerate(itertools.zip_longest(left, right), 1):
            if a != b:
                raise Different("\"%s\" returned different rows at line %d:\n  %s: %s\n  %s: %s\nThe query: %s" % (
                    query.name, count, METHODS[0], a and a.decode().strip(), METHODS[1], b and b.decode().strip(),
                    query.text(METHODS[1])))
    for name in names:
        os.remove(name)
    if count == 0:
        raise DemoError("\"%s\" returned no rows, so there is nothing to compare" % query.name)
    return count


def make_keys(server, data, total):
    """Makes a table of keys to look up: rows picked evenly from the shuffled file, each tenth changed to an order that does
    not exist (TPC-H uses only the first 8 of each 32 order numbers). Returns the lowest and the highest order."""
    every = max(total // POINT_KEYS, 1)
    rows = []
    first, last = 1 << 62, 0
    with open(data, "rb") as lines:
        for line in itertools.islice(lines, 0, None, every):
            fields = line.split(b"|", 4)
            order = int(fields[0])
            first, last = min(first, order), max(last, order)
            rows.append("%d\t%d\t%d" % (len(rows), order | 24 if len(rows) % 10 == 9 else order, int(fields[3])))
    rows = (rows * (POINT_KEYS // len(rows) + 1))[:POINT_KEYS]
    server.run("CREATE TABLE demo_keys (n integer, o bigint, l integer);\nCOPY demo_keys FROM STDIN;\n"
               + "\n".join(rows) + "\n\\.\nANALYZE demo_keys;\n")
    return first, last


# --- everything ------------------------------------------------------------


def show_figures(rows, figures, times):
    def line(name, values, digits):
        ratio = "%9.2f" % (values[1] / values[0]) if values[0] else "%9s" % "-"
        print("%-34s" % name + "".join("%14s" % format(v, ",.%df" % digits) for v in values) + ratio)

    def both(key):
        return [figures[m][key] for m in METHODS]

    print("\n%-34s%14s%14s%9s" % ("%s rows" % format(rows, ","), "btree", "lsm", "ratio"))
    line("load, s", both("seconds"), 1)
    line("load, rows/s", both("rate"), 0)
    line("load, rows/s, last tenth", both("tail_rate"), 0)
    line("load, longest transaction, ms", both("worst_ms"), 0)
    line("index on the order, MB", both("order_mb"), 1)
    line("index on the date, MB", both("date_mb"), 1)
    line("both indexes, bytes/row", both("index_bytes"), 1)
    line("WAL while loading, bytes/row", both("wal_bytes"), 0)
    for query, count, values in times:
        if query.unit_rows:
            line("%s, us each" % query.name, [v * 1000 / query.unit_rows for v in values], 1)
        else:
            line("%s, ms" % query.name, values, 1)
    print("\nThe ratio is lsm divided by btree. Load, WAL and query figures include the table. The difference grows when"
          " the\nindexes are much larger than memory: try a larger --scale. docs/performance.md has full measurements.\n")


def run(options):
    server = Server(options)
    with open(options.data, "rb") as lines:
        total = sum(1 for _ in lines)
    server.run("CREATE EXTENSION pg_lsm;")
    figures = {}
    step("Loading %s rows, %s per transaction, into each of two tables" % (format(total, ","), format(options.batch, ",")))
    for method in METHODS:
        table = "lineitem_" + method
        server.run("SET client_min_messages = warning;\n" + TABLE.format(m=method) + "CHECKPOINT;\n")
        before = server.run("SELECT pg_current_wal_insert_lsn();")
        figures[method] = load(server, table, method, options.data, total, options.batch)
        wal = server.number("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s');" % before)
        sizes = [server.number("SELECT pg_relation_size('%s_%s');" % (table, index)) for index in ("order", "date")]
        figures[method].update(wal_bytes=wal / total, index_bytes=sum(sizes) / total,
                               order_mb=sizes[0] / 1e6, date_mb=sizes[1] / 1e6)

    step("Vacuuming, and verifying the lsm indexes")
    first, last = make_keys(server, options.data, total)
    server.run("VACUUM (ANALYZE) lineitem_btree;\nVACUUM (ANALYZE) lineitem_lsm;\n"
               "SELECT lsm_check('lineitem_lsm_order', true);\nSELECT lsm_check('lineitem_lsm_date', true);\n")

    step("Running queries on both tables, and comparing the answers row by row")
    times = []
    for query in queries(first, last):
        values = [measure(server, query, method) for method in METHODS]
        count = compare(server, query, options.work)
        print("         %-26s %9s rows equal (%s)" % (query.name, format(count, ","), query.node.lower()), flush=True)
        times.append((query, count, values))
    show_figures(total, figures, times)


def main():
    global started
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--psql", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--data", required=True, help="the shuffled rows, fields separated by |")
    parser.add_argument("--work", required=True, help="a folder for temporary files")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--started", type=float, default=0, help="seconds that the demo has been running")
    options = parser.parse_args()
    started -= options.started
    try:
        run(options)
    except Different as error:
        print("\nDIFFERENT ANSWERS: %s" % error, file=sys.stderr)
        return 3
    except DemoError as error:
        print("\nerror: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


sys.exit(main())
