#!/usr/bin/python3
"""Compares lsm indexes with B-trees on tables that Citus distributes.

    citus.py PG_CONFIG FOLDER

Starts a coordinator and two workers in FOLDER, and runs

- the statements of statements.sql on both kinds of tables,
- what differs between them (DIFFERENCES),
- moves of shards and rebalances while clients write,
- crashes of workers and of the coordinator while clients write.

After each part both kinds of tables have the same contents, all indexes of the schema l are lsm indexes, and lsm_check
finds no fault in any shard. Prints TAP. PG_CONFIG names a server into which Citus and pg_lsm are installed; without
Citus, everything is skipped.

PG_LSM_CITUS_CRASHES  how many times a server is killed (default: 6)
PG_LSM_SEED           seed of the clients (default: 1)
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "oracle"))

from cluster import HOST, Cluster
from differences import DIFFERENCES
from load import Load
from pgwire import PgError

SCHEMAS = {"l": {":am": "lsm", ":lsm": "true"}, "b": {":am": "btree", ":lsm": "false"}}
FEWEST_STATEMENTS = 200
CHANGES_NOTHING = ("SELECT", "SET", "WITH", "PREPARE", "DECLARE", "FETCH", "CLOSE", "DEALLOCATE", "SAVEPOINT")
MOST_LINES = 20         # of a difference that are shown


def read_statements(path):
    """The statements of a file, without comments, each with its mark: "fails", "may fail" or nothing."""
    found, mark, lines = [], "", []
    with open(path) as file:
        for line in file:
            if line.startswith("--"):
                mark = line[2:].strip()
            else:
                lines.append(line)
            if line.endswith(";\n") and not line.startswith("--"):
                found.append(("".join(lines).strip()[:-1], mark))
                mark, lines = "", []
    return [(statement, mark if mark in ("fails", "may fail") else "") for statement, mark in found]


def outcome(connection, statement):
    """What a statement returns, in a form that can be compared: names of shards have numbers, which differ."""
    try:
        result = connection.query(statement)
    except PgError as error:
        return ["ERROR %s %s" % (error.sqlstate, re.sub(r"_\d{6,}", "_N", error.message))]
    rows = [" | ".join("NULL" if field is None else field for field in row) for row in result.rows]
    if "ORDER BY" not in statement:
        rows.sort()
    return rows + [result.tag]


def contents_of(connection, table):
    return outcome(connection, "SELECT count(*), sum(hashtext(t::text)::bigint) FROM %s t" % table)


class Suite:
    def __init__(self, pg_config, folder):
        self.cluster = Cluster(pg_config, folder)
        self.folder = folder
        self.cases = 0
        self.failed = 0

    def case(self, name, problems):
        """Prints a result: the case has passed if there are no problems."""
        self.cases += 1
        self.failed += bool(problems)
        print("%s %d - %s" % ("not ok" if problems else "ok", self.cases, name.replace("#", "")))
        for problem in problems[:MOST_LINES]:
            print("#   %s" % problem)
        sys.stdout.flush()

    def attempt(self, name, function, *arguments):
        """Runs a part of the suite. An error in it is a problem of this part."""
        try:
            self.case(name, function(*arguments))
        except Exception as error:
            self.case(name, ["%s: %s" % (type(error).__name__, error)])

    # --- what holds after each part ------------------------------------------

    def other_methods(self, schema):
        """Indexes of schema l that are no lsm indexes, on all nodes."""
        return ["%s: %s is a %s index" % (node.name, *row) for node in self.cluster.nodes for row in node.sql(
            "SELECT c.oid::regclass, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
            " WHERE c.relkind IN ('i', 'I') AND a.amname <> 'lsm' AND c.relnamespace = '%s'::regnamespace" % schema)]

    def faults(self):
        """What lsm_check says about all lsm indexes of all nodes, and what the servers' logs say."""
        found = self.cluster.alarms()
        for node in self.cluster.nodes:
            found += ["%s: %s: %s" % (node.name, *row) for row in node.sql("SELECT * FROM lsm_check_all(NULL, true)")]
        return found

    def check_all(self, after):
        self.attempt("all indexes are lsm indexes after " + after, self.other_methods, "l")
        self.attempt("no index has a fault after " + after, self.faults)

    # --- the parts -----------------------------------------------------------

    def run_statements(self):
        """Runs each statement in both schemas. Returns the number of statements."""
        sessions = {}
        for schema in SCHEMAS:
            self.cluster.coordinator.sql("CREATE SCHEMA " + schema)
            sessions[schema] = self.cluster.coordinator.connect()
            sessions[schema].query("SET search_path = %s, public" % schema)
        statements = read_statements(os.path.join(HERE, "statements.sql"))
        for statement, mark in statements:
            self.attempt(" ".join(statement.split())[:100], self.compare, sessions, statement, mark)
        for session in sessions.values():
            session.close()
        return len(statements)

    def compare(self, sessions, statement, mark):
        results = []
        for schema, words in SCHEMAS.items():
            text = statement
            for name, word in {**words, ":dir": self.folder}.items():
                text = re.sub(re.escape(name) + r"\b", word, text)
            results.append(outcome(sessions[schema], text))
        problems = self.differences(*results)
        if mark != "may fail" and results[0][0].startswith("ERROR") != (mark == "fails"):
            problems += ["should %s, but: %s" % ("fail" if mark else "not fail", results[0][0])]
        if statement.startswith(CHANGES_NOTHING) and "_table" not in statement or sessions["l"].status == "E":
            return problems
        tables = {row[0] for row in sessions["l"].query(
            "SELECT relname FROM pg_class WHERE relnamespace = 'l'::regnamespace AND relkind IN ('r', 'p')").rows}
        for table in sorted(tables & set(re.findall(r"\w+", statement))):
            problems += self.differences(*(contents_of(session, table) for session in sessions.values()))
        return problems

    @staticmethod
    def differences(lsm, btree):
        if lsm == btree:
            return []
        return ["lsm:"] + lsm[:MOST_LINES // 2 - 1] + ["btree:"] + btree[:MOST_LINES // 2 - 1]

    def uses_lsm(self):
        """Do the plans of workers use lsm indexes?"""
        queries = {"events_pkey": "SELECT id FROM l.events WHERE device = 77 ORDER BY id",
                   "events_at": "SELECT at FROM l.events ORDER BY at DESC LIMIT 5",
                   "events_kind": "SELECT kind FROM l.events WHERE kind = 'k2' AND value > 95",
                   "regions_pkey": "SELECT * FROM l.regions WHERE region = 7"}
        problems = []
        for index, query in queries.items():
            plan = "\n".join(row[0] for row in self.cluster.coordinator.sql("EXPLAIN (COSTS OFF) " + query))
            if not re.search(r"(using|on) %s_\d+" % index, plan):
                problems += ["%s is not used:" % index, *plan.splitlines()]
        return problems

    def run_differences(self):
        """Statements whose results are known: what works for lsm indexes in another way, or not."""
        session = self.cluster.coordinator.connect()
        session.query("CREATE SCHEMA d")
        session.query("SET search_path = d, public")
        for statement, expected in DIFFERENCES:
            try:
                result = session.query(statement)
                found = "\n".join([" | ".join(map(str, row)) for row in result.rows] + [result.tag])
            except PgError as error:
                found = str(error)
            self.case(" ".join(statement.split())[:100],
                      [] if re.search(expected, found) else ["expected: " + expected, "found: " + found])
        session.close()
        self.attempt("no index has a fault after what differs", self.faults)

    def compare_load(self, load):
        """Both kinds of tables have the same rows, and all that clients were told to be committed."""
        self.cluster.settle()
        session = self.cluster.coordinator.connect()
        problems = load.lost(session)
        for table in load.TABLES:
            problems += self.differences(*(contents_of(session, schema + "." + table) for schema in SCHEMAS))
        session.close()
        return problems + load.problems

    def run_moves(self, load):
        coordinator = self.cluster.coordinator
        nodes = {node.name: "'%s', %d" % (HOST, node.port) for node in self.cluster.nodes}
        for mode in ("block_writes", "force_logical"):
            steps = [("SELECT citus_move_shard_placement(%s, %s, %s, '%s')"
                      % (*self.placement(other), nodes[to], mode), "moves a shard to " + to)
                     for other, to in (("worker1", "worker2"), ("worker2", "worker1"))]
            for sql, what in steps:
                self.attempt("%s, %s, under writes" % (what, mode), self.under_writes, load, sql)
            self.attempt("rebalances to the coordinator, %s, under writes" % mode, self.under_writes, load,
                         "SELECT citus_set_node_property(%s, 'shouldhaveshards', true)" % nodes["coordinator"],
                         "SELECT rebalance_table_shards('l.moving', shard_transfer_mode := '%s')" % mode)
            self.attempt("the coordinator has shards", lambda: [] if int(coordinator.sql(
                "SELECT count(*) FROM citus_shards WHERE nodeport = %d AND citus_table_type = 'distributed'"
                % coordinator.port)[0][0]) > 0 else ["it has none"])
            self.attempt("drains the coordinator, %s, under writes" % mode, self.under_writes, load,
                         "SELECT citus_drain_node(%s, '%s')" % (nodes["coordinator"], mode))
        self.check_all("moves")

    def placement(self, name):
        """A shard of the load's table on a node, with that node, as arguments of citus_move_shard_placement."""
        port = next(node.port for node in self.cluster.nodes if node.name == name)
        shard = self.cluster.coordinator.sql("SELECT min(shardid) FROM citus_shards"
                                             " WHERE table_name = 'l.moving'::regclass AND nodeport = %d" % port)[0][0]
        return shard, "'%s', %d" % (HOST, port)

    def under_writes(self, load, *statements):
        with load:
            load.wait_for_commits(10)
            for statement in statements:
                self.cluster.coordinator.sql(statement)
            load.wait_for_commits(10)
        return self.compare_load(load)

    def run_crashes(self, load, count):
        for number in range(count):
            node = self.cluster.nodes[(number + 1) % len(self.cluster.nodes)]
            how = "immediate" if number % 4 == 3 else "kill -9"
            self.attempt("crash %d: %s of %s under writes" % (number + 1, how, node.name), self.crash, load, node, how)
        self.check_all("crashes")

    def crash(self, load, node, how):
        with load:
            load.wait_for_commits(25)
            if how == "immediate":
                node.stop("immediate")
            else:
                node.kill()
            node.start()
            load.wait_for_commits(10)
        return self.compare_load(load)

    def run(self):
        self.attempt("the cluster starts", lambda: self.cluster.create() or [])
        if self.failed:
            return
        count = self.run_statements()
        self.case("there are at least %d statements" % FEWEST_STATEMENTS,
                  [] if count >= FEWEST_STATEMENTS else [str(count)])
        self.attempt("plans use lsm indexes", self.uses_lsm)
        self.check_all("the statements")
        self.run_differences()
        load = Load(self.cluster.coordinator, int(os.environ.get("PG_LSM_SEED", 1)))
        load.create()
        self.run_moves(load)
        self.run_crashes(load, int(os.environ.get("PG_LSM_CITUS_CRASHES", 6)))


def main():
    pg_config, folder = sys.argv[1:]
    shared = subprocess.check_output([pg_config, "--sharedir"], text=True).strip()
    if not os.path.exists(os.path.join(shared, "extension", "citus.control")):
        print("1..0 # SKIP Citus is not installed in this PostgreSQL")
        return 0
    suite = Suite(pg_config, folder)
    try:
        suite.run()
    finally:
        suite.cluster.destroy()
    print("%d passed, %d failed" % (suite.cases - suite.failed, suite.failed))
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
