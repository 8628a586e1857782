"""A table on two servers answers as the table on one server does, and docs/scale-out.md is true.

    checks.py TREE PG_CONFIG FOLDER

Prints TAP lines; tools/test.sh calls it. Runs the statements and the errors of docs/scale-out.md: blocks that follow a
comment "run: SERVER", and rows of tables that follow a comment "errors: SERVER".
"""

import os
import re
import subprocess
import sys
import types

TREE, PG_CONFIG, FOLDER = sys.argv[1:]
sys.path[:0] = [os.path.join(TREE, "bench"), os.path.join(TREE, "test", "bench")]

from smoke import Tap, show                                             # noqa: E402
from suite import BenchError                                            # noqa: E402
from suite.scaleout import engines, work                                # noqa: E402
from suite.scaleout.__main__ import make_site                           # noqa: E402

ROWS, COPIED, BATCH = 30_000, 5_000, 1000
OPTIONS = types.SimpleNamespace(bindir=subprocess.check_output([PG_CONFIG, "--bindir"]).decode().strip(), work=FOLDER,
                                user=None, memory=0, quick=True, batch=BATCH, clients=2)
PAGE = os.path.join(TREE, "docs", "scale-out.md")
EVENTS = "SELECT ('b3a0f9a2-9d5c-4c3e-8f0e-' || lpad(i::text, 12, '0'))::uuid, i FROM generate_series(%d, %d) i"
# Some more rows than the page loads, for its errors.
FILL = {"postgres_fdw": "INSERT INTO events (id, device) %s;" % (EVENTS % (5001, 5100)), "PL/Proxy": ""}
CHANGES = ("UPDATE t SET f = left(md5(k::text), 10) WHERE k % 5 = 0; DELETE FROM t WHERE k % 7 = 0;",
           "INSERT INTO t SELECT k, 'twice' FROM made(1, 2000) ON CONFLICT DO NOTHING;")


def error_of(server, sql):
    """The error that some SQL raises; empty if it succeeds."""
    try:
        server.query(sql)
        return ""
    except BenchError as error:
        return str(error)


def load(site, engine):
    """By INSERT, and by COPY where there is a table; the same rows on every site."""
    loader = work.Work(site, engine, None, OPTIONS, lambda text: None)
    loader.load(0, ROWS)
    if engine.extension != "plproxy":
        text = site.nodes[0].query("SELECT k, f FROM made(%d, %d);" % (ROWS, ROWS + COPIED - 1)).replace("|", "\t")
        site.front.query("COPY t FROM STDIN;\n%s\n\\.\n" % text)
    engine.analyze(site)
    return loader


def compare(tap, what, expected, answers):
    for title, answer in expected.items():
        tap.check(answers.get(title) == answer and answer[0] > 0 or title == "absent keys" and answers[title] == answer,
                  "%s: %s, %d rows" % (what, title, answer[0]))


def answers_of_one():
    """The answers of one server: as loaded, after changes, and without the rows of COPY."""
    engine = engines.Engine("lsm", BATCH)
    with make_site(OPTIONS, engine, 0) as site:
        site.start()
        engine.make(site)
        loader = load(site, engine)
        loaded = loader.answers()
        for sql in CHANGES:
            site.front.query(sql)
        changed = loader.answers()
        site.front.query("TRUNCATE t;")
        loader.load(0, ROWS)
        return loaded, changed, loader.answers()


# --- postgres_fdw

def plans(tap, front):
    def plan(sql):
        return front.query("EXPLAIN (VERBOSE, COSTS OFF) %s;" % sql)
    text = plan("SELECT k, f FROM t WHERE k = 5")
    tap.check(text.count("Foreign Scan") == 1 and "WHERE ((k = 5))" in text, "a lookup goes to one server")
    text = plan("SELECT k, count(*) FROM t GROUP BY k")
    tap.check(text.count("GROUP BY") == 2 and text.count("Async Foreign Scan") == 2,
              "the servers compute groups, at once")
    text = plan("SELECT count(*) FROM t")
    tap.check("Remote SQL: SELECT count" not in text, "a total over all partitions is not pushed down")
    text = plan("SELECT k FROM t ORDER BY k LIMIT 10")
    tap.check("Merge Append" in text and text.count("ORDER BY k ASC") == 2 and "Async" not in text,
              "rows in order come from a Merge Append, which is not asynchronous")


def foreign_tables(tap, loaded, changed):
    engine = engines.ForeignTables("lsm", BATCH)
    with make_site(OPTIONS, engine, 2) as site:
        site.start()
        engine.make(site)
        loader = load(site, engine)
        compare(tap, "postgres_fdw", loaded, loader.answers())
        plans(tap, site.front)
        for number, node in enumerate(site.nodes):
            rows = int(node.query("SELECT count(*) FROM t;"))
            tap.check(0.45 < rows / (ROWS + COPIED) < 0.55, "server %d has its share of the rows" % (number + 1))
            text = node.query("EXPLAIN SELECT k, f FROM t_%d WHERE k = 5;" % number)
            tap.check("Index Scan using t_%d_k_idx" % number in text, "a lookup uses the lsm index there")
        for sql in CHANGES:
            site.front.query(sql)
        compare(tap, "postgres_fdw, after changes", changed, loader.answers())
        for node in site.nodes:
            node.query("SELECT lsm_check(indexrelid, true) FROM pg_stat_lsm_indexes;")
        tap.check(True, "the indexes are sound")
        lost_server(tap, site)
        clear(site, "postgres_fdw")
        run_section(tap, site, "postgres_fdw")
        run_section(tap, site, "Sharding in the application")
        keys(tap, site.front)


def keys(tap, front):
    """events is as docs/scale-out.md and FILL have left it."""
    before = front.query("SELECT count(*) FROM events;")
    text = error_of(front, "INSERT INTO events (id, device) %s;" % (EVENTS % (3, 3000)))
    tap.check("duplicate key value violates unique constraint" in text and "-000000000003) already exists" in text,
              "a duplicate is refused, by its key")
    tap.check(front.query("SELECT count(*) FROM events;") == before, "and nothing remains of the statement")
    rows = front.query((EVENTS + ";") % (3, 3000)).replace("|", "\t")
    text = error_of(front, "COPY events (id, device) FROM STDIN;\n%s\n\\.\n" % rows)
    tap.check("duplicate key value violates unique constraint" in text and
              front.query("SELECT count(*) FROM events;") == before, "the same by COPY")
    front.query("INSERT INTO events (id, device) %s ON CONFLICT DO NOTHING;" % (EVENTS % (1, 3000)))
    tap.check(front.query("SELECT count(*), count(DISTINCT id) FROM events;") == "3100|3100",
              "ON CONFLICT DO NOTHING adds the others")


def lost_server(tap, site):
    before = site.front.query("SELECT count(*) FROM t;")
    site.nodes[1].kill()
    tap.check('could not connect to server "node2"' in error_of(site.front, "SELECT count(*) FROM t;"),
              "a query names the server that does not run")
    tap.check(site.front.query("SELECT count(*) > 0 FROM t_0;") == "t", "the other server answers")
    site.nodes[1].start()
    tap.check(site.front.query("SELECT count(*) FROM t;") == before, "when it is back, all rows are there")


# --- PL/Proxy

def proxy(tap, expected):
    engine = engines.Proxy("lsm", BATCH)
    try:
        engine.check(OPTIONS.bindir, 2)
    except engines.Missing as error:
        print("ok - PL/Proxy # SKIP %s" % error)
        return
    with make_site(OPTIONS, engine, 2) as site:
        site.start()
        engine.make(site)
        loader = load(site, engine)
        compare(tap, "PL/Proxy", expected, loader.answers())
        clear(site, "plproxy")
        run_section(tap, site, "PL/Proxy")
        no_transaction(tap, site.front)


def no_transaction(tap, front):
    def count():
        return int(front.query("SELECT sum(n) FROM totals();"))

    def add(first, more=""):
        return ("SELECT * FROM add_readings(array_cat('{%s}', (SELECT array_agg(i) FROM generate_series(%d, %d) i)));"
                % (more, first, first + 99))
    before = count()
    front.query("BEGIN; %s ROLLBACK;" % add(1000))
    tap.check(count() == before + 100, "ROLLBACK undoes nothing")
    # It depends on who is first: a server that has not finished when another fails is canceled.
    kept, refused, first = 0, True, 2000
    while kept == 0 and refused and first < 5000:
        before = count()
        refused = "duplicate key value violates unique constraint" in error_of(front, add(first, "1"))
        kept = count() - before
        first += 100
    tap.check(refused, "a duplicate is refused")
    tap.check(0 < kept < 100, "but other servers can keep their rows")


# --- docs/scale-out.md

def for_test(site, text):
    """Replaces the addresses on the page by those of our servers."""
    for number, node in enumerate(site.nodes, 1):
        text = text.replace("host '10.0.0.%d'" % number, "host '%s', port '%s'" % (node.host, node.port))
        text = text.replace("host=10.0.0.%d" % number, "host=%s port=%s" % (node.host, node.port))
    return re.sub(r"(DATABASE |dbname '|dbname=)shop", r"\1postgres", text)


def clear(site, extension):
    """Drops what the page creates, and creates its role."""
    for node in site.nodes:
        node.query("CREATE ROLE app SUPERUSER LOGIN; DROP EXTENSION pg_lsm CASCADE;")
    site.front.query("DROP TABLE IF EXISTS t; DROP EXTENSION %s CASCADE;" % extension)


def run_section(tap, site, section):
    """Runs the blocks of a section, and checks its errors."""
    with open(PAGE) as file:
        part = re.search(r"^## %s\n(.*?)(?=^## )" % re.escape(section), file.read(), re.M | re.S).group(1)
    servers = {"coordinator": [site.front], "node 1": [site.nodes[0]], "node 2": [site.nodes[1]], "nodes": site.nodes}
    pieces = re.split(r"<!-- (run|errors): (.*?) -->\n", part)
    for kind, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
        if kind == "errors":
            if name == "coordinator":
                site.front.query(FILL[section])
            for sql, message in re.findall(r"^\| `([^|]*?)` \| `([^|]*?)` \|", text, re.M):
                found = error_of(servers[name][0], "BEGIN; %s;" % for_test(site, sql))
                # Which partition comes first is not ours to say.
                good = ("ERROR:  " + message).replace("events_0", "events_1") in found.replace("events_0", "events_1")
                tap.check(good, "error of: %s" % sql)
                if not good:
                    show(found or "no error")
            continue
        sql = for_test(site, re.match(r"```sql\n(.*?)```", text, re.S).group(1))
        for server in servers[name]:
            found = error_of(server, sql)
            tap.check(not found, "%s: %s ..." % (name, sql.splitlines()[0][:70]))
            if found:
                show(found)


def main():
    tap = Tap()
    try:
        engines.ForeignTables.check(OPTIONS.bindir, 2)
    except engines.Missing as error:
        print("ok - several servers # SKIP %s" % error)
        return 0
    loaded, changed, inserted = answers_of_one()
    foreign_tables(tap, loaded, changed)
    proxy(tap, inserted)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
