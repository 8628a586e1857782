"""How a table gets onto several servers: the statements for each engine. docs/scale-out.md shows the same statements.

The table is t(k int4, f char(10)), spread by a hash of k, with an index on k and one on (f, k).
"""

import os
import subprocess

from .. import BenchError

ROWS_SQL = """CREATE FUNCTION made(first int4, last int4) RETURNS TABLE (k int4, f char(10)) LANGUAGE sql IMMUTABLE
AS 'SELECT hashint4(i), left(md5(i::text), 10)::char(10) FROM generate_series(first, last) i';"""
TABLE_SQL = "CREATE TABLE t (k int4 NOT NULL, f char(10))"


class Engine:
    """The table on one server, and what the other engines do in the same way."""

    title = "one server"
    extension = "pg_lsm"
    preload = "pg_lsm"
    listens = False
    session = {}            # settings of sessions that look at the nodes' tables
    # What clients send. {} is the number of the first row and of the last one.
    insert_sql = "INSERT INTO t SELECT * FROM made({}, {})"
    lookup_sql = "SELECT k, f FROM t WHERE k = $1"
    lookup_made_sql = "SELECT k, f FROM t WHERE k = hashint4($1::int4)"
    range_sql = "SELECT k, f FROM t WHERE k BETWEEN $1 AND $2 ORDER BY k, f"

    def __init__(self, method, batch):
        self.method, self.batch = method, batch

    def copies(self, major):
        """Whether COPY is a good way to load on this version."""
        return True

    @classmethod
    def check(cls, bindir, nodes):
        """Raises an error if the server lacks the engine."""
        share = subprocess.check_output([os.path.join(bindir, "pg_config"), "--sharedir"]).decode().strip()
        if not os.path.exists(os.path.join(share, "extension", cls.extension + ".control")):
            raise Missing("the server has no extension %s" % cls.extension)

    def make(self, site):
        """Makes the table and its indexes on all servers."""
        for server in site.servers:
            server.query("CREATE EXTENSION pg_lsm; %s" % ROWS_SQL)
        for number, node in enumerate(site.nodes):
            node.query("%s; %s" % (self.node_table_sql(number, len(site.nodes)), self.index_sql()))
        self.make_front(site)

    def node_table_sql(self, number, count):
        return TABLE_SQL

    def make_front(self, site):
        pass

    def index_sql(self):
        return "CREATE INDEX t_k ON t USING {0} (k); CREATE INDEX t_f ON t USING {0} (f, k);".format(self.method)

    def analyze(self, site):
        for node in site.nodes:
            node.query("VACUUM (INDEX_CLEANUP OFF, TRUNCATE OFF) t; ANALYZE t; CHECKPOINT;")

    def queries(self, site):
        """{title: statement}. Engines differ in the statements, but not in the answers."""
        return dict(_QUERIES)


class Missing(BenchError):
    """The engine is not installed."""


_QUERIES = (
    ("keys", "SELECT k, f FROM t WHERE k = ANY({keys}) ORDER BY k, f"),
    ("absent keys", "SELECT k, f FROM t WHERE k = ANY({absent}) ORDER BY k, f"),
    ("range in order", "SELECT k, f FROM t WHERE k BETWEEN {low} AND {high} ORDER BY k, f"),
    ("last of a range", "SELECT k, f FROM t WHERE k BETWEEN {low} AND {high} ORDER BY k DESC, f DESC LIMIT 100"),
    ("first in order", "SELECT k, f FROM t WHERE k >= {low} ORDER BY k, f LIMIT 1000"),
    ("range of the other index", "SELECT f, k FROM t WHERE f BETWEEN {f_low} AND {f_high} ORDER BY f, k"),
    ("groups", "SELECT k, count(*), min(f), max(f) FROM t WHERE k BETWEEN {low} AND {high} GROUP BY k ORDER BY k"),
    ("totals", "SELECT count(*), sum(k::int8), min(k), max(k), sum(hashtext(f::text)::int8 * (k % 1000)) FROM t"),
)


class ForeignTables(Engine):
    """Partitions that are foreign tables, by postgres_fdw."""

    title = "postgres_fdw"
    extension = "postgres_fdw"

    def copies(self, major):
        return major >= 16          # before, COPY sends each row by itself

    def node_table_sql(self, number, count):
        """The node's table is a partition as well, so the node rejects rows that belong to another node."""
        return ("%s PARTITION BY HASH (k); CREATE TABLE t_%d PARTITION OF t FOR VALUES WITH "
                "(MODULUS %d, REMAINDER %d)" % (TABLE_SQL, number, count, number))

    def make_front(self, site):
        site.front.query("CREATE EXTENSION postgres_fdw; %s PARTITION BY HASH (k);" % TABLE_SQL)
        site.front.query("ALTER DATABASE postgres SET enable_partitionwise_aggregate = on; "
                         "ALTER DATABASE postgres SET enable_partitionwise_join = on;")
        for number, node in enumerate(site.nodes):
            site.front.query("""
                CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (
                    host '{host}', port '{port}', dbname 'postgres', async_capable 'true', parallel_commit 'true',
                    batch_size '{batch}', fetch_size '1000', options '-c cursor_tuple_fraction=0.01');
                CREATE USER MAPPING FOR CURRENT_USER SERVER {name} OPTIONS (user 'postgres');
                CREATE FOREIGN TABLE t_{number} PARTITION OF t FOR VALUES WITH (MODULUS {count}, REMAINDER {number})
                    SERVER {name} OPTIONS (table_name 't_{number}');
                """.format(name=node.name, host=node.host, port=node.port, number=number, count=len(site.nodes),
                           batch=min(self.batch, 1000)))

    def analyze(self, site):
        super().analyze(site)
        site.front.query("ANALYZE t;")

    def queries(self, site):
        """A total over all partitions would fetch all rows, so each partition computes its own."""
        parts = " UNION ALL ".join(
            "SELECT count(*) AS n, sum(k::int8) AS s, min(k) AS low, max(k) AS high, "
            "sum(hashtext(f::text)::int8 * (k %% 1000)) AS h FROM t_%d" % number for number in range(len(site.nodes)))
        return dict(_QUERIES, totals="SELECT sum(n), sum(s), min(low), max(high), sum(h) FROM (%s) p" % parts)


_PROXY_SQL = """
    CREATE FUNCTION {name}({arguments}) RETURNS {result} LANGUAGE plproxy AS
    $$ CLUSTER 'nodes'; {run} {sql} $$;"""
_ROWS = "TABLE (k int4, f char(10))"
_PROXY_FUNCTIONS = (
    ("t_one", "key int4", _ROWS, "RUN ON hashint4(key);", "SELECT k, f FROM t WHERE k = key;"),
    ("t_keys", "keys int4[]", _ROWS, "SPLIT keys; RUN ON hashint4(keys);", "SELECT k, f FROM t WHERE k = ANY(keys);"),
    ("t_range", "low int4, high int4", _ROWS, "RUN ON ALL;",
     "SELECT k, f FROM t WHERE k BETWEEN low AND high ORDER BY k, f;"),
    ("t_last", "low int4, high int4, rows int4", _ROWS, "RUN ON ALL;",
     "SELECT k, f FROM t WHERE k BETWEEN low AND high ORDER BY k DESC, f DESC LIMIT rows;"),
    ("t_first", "low int4, rows int4", _ROWS, "RUN ON ALL;",
     "SELECT k, f FROM t WHERE k >= low ORDER BY k, f LIMIT rows;"),
    ("t_range_f", "low text, high text", _ROWS, "RUN ON ALL;",
     "SELECT k, f FROM t WHERE f BETWEEN low::char(10) AND high::char(10) ORDER BY f, k;"),
    ("t_groups", "low int4, high int4", "TABLE (k int4, n int8, first char(10), last char(10))", "RUN ON ALL;",
     "SELECT k, count(*) AS n, min(f) AS first, max(f) AS last FROM t WHERE k BETWEEN low AND high GROUP BY k;"),
    ("t_totals", "", "TABLE (n int8, s int8, low int4, high int4, h int8)", "RUN ON ALL;",
     "SELECT count(*) AS n, sum(k::int8)::int8 AS s, min(k) AS low, max(k) AS high, "
     "sum(hashtext(f::text)::int8 * (k % 1000))::int8 AS h FROM t;"),
    ("t_add", "keys int4[], fillers text[]", "SETOF int4", "SPLIT keys, fillers; RUN ON hashint4(keys);", ""),
)
_PROXY_ADD = """CREATE FUNCTION t_add(keys int4[], fillers text[]) RETURNS int4 LANGUAGE sql AS
'INSERT INTO t SELECT k, f::char(10) FROM unnest(keys, fillers) u (k, f); SELECT cardinality(keys)';"""


class Proxy(Engine):
    """Functions that run on the nodes, by PL/Proxy. There is no table on the front server, and so no COPY."""

    title = "PL/Proxy"
    extension = "plproxy"
    insert_sql = ("SELECT sum(n) FROM t_add((SELECT array_agg(k) FROM made({0}, {1})), "
                  "(SELECT array_agg(f::text) FROM made({0}, {1}))) n")
    lookup_sql = "SELECT k, f FROM t_one($1)"
    lookup_made_sql = "SELECT k, f FROM t_one(hashint4($1::int4))"
    range_sql = "SELECT k, f FROM t_range($1, $2) ORDER BY k, f"

    def copies(self, major):
        return False

    @classmethod
    def check(cls, bindir, nodes):
        super().check(bindir, nodes)
        if nodes & (nodes - 1):
            raise BenchError("PL/Proxy needs a power of two nodes, not %d" % nodes)

    def make_front(self, site):
        site.front.query("CREATE EXTENSION plproxy; CREATE SERVER nodes FOREIGN DATA WRAPPER plproxy OPTIONS (%s); "
                         "CREATE USER MAPPING FOR CURRENT_USER SERVER nodes OPTIONS (user 'postgres');" %
                         ", ".join("p%d 'host=%s port=%s dbname=postgres'" % (number, node.host, node.port)
                                   for number, node in enumerate(site.nodes)))
        for node in site.nodes:
            node.query(_PROXY_ADD)
        for name, arguments, result, run, sql in _PROXY_FUNCTIONS:
            site.front.query(_PROXY_SQL.format(name=name, arguments=arguments, result=result, run=run, sql=sql))

    def queries(self, site):
        return {
            "keys": "SELECT k, f FROM t_keys({keys}) ORDER BY k, f",
            "absent keys": "SELECT k, f FROM t_keys({absent}) ORDER BY k, f",
            "range in order": "SELECT k, f FROM t_range({low}, {high}) ORDER BY k, f",
            "last of a range": "SELECT k, f FROM t_last({low}, {high}, 100) ORDER BY k DESC, f DESC LIMIT 100",
            "first in order": "SELECT k, f FROM t_first({low}, 1000) ORDER BY k, f LIMIT 1000",
            "range of the other index": "SELECT f, k FROM t_range_f({f_low}, {f_high}) ORDER BY f, k",
            "groups": "SELECT * FROM t_groups({low}, {high}) ORDER BY k",
            "totals": "SELECT sum(n), sum(s), min(low), max(high), sum(h) FROM t_totals()",
        }


class Citus(Engine):
    """A distributed table of Citus, with the default number of shards."""

    title = "Citus"
    extension = "citus"
    preload = "citus,pg_lsm"
    listens = True
    session = {"citus.override_table_visibility": "off"}

    def make(self, site):
        for server in site.servers:
            server.query("CREATE EXTENSION citus; CREATE EXTENSION pg_lsm; %s" %
                         (ROWS_SQL if server is site.front else ""))
        site.front.query("SELECT citus_set_coordinator_host('%s', %s);" % (site.front.host, site.front.port))
        for node in site.nodes:
            site.front.query("SELECT citus_add_node('%s', %s);" % (node.host, node.port))
        site.front.query("%s; SELECT create_distributed_table('t', 'k'); %s" % (TABLE_SQL, self.index_sql()))

    def analyze(self, site):
        site.front.query("VACUUM t; ANALYZE t;")


ENGINES = {"fdw": ForeignTables, "plproxy": Proxy, "citus": Citus}
