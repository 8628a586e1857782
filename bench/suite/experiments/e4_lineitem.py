"""Experiment 4: Jin's, TPC-H lineitem in random order."""

from ..figures import Part, Plot, Section
from ..plan import interleave, load_seconds

ID, NAME = "4", "lineitem"
TITLE = "TPC-H lineitem, shuffled"
SOURCE = """Shichao Jin, "Introducing LSM-tree into PostgreSQL, making it as a data gobbler", PGCon 2020 (<a
href="https://www.pgcon.org/events/pgcon_2020/schedule/session/18-introducing-lsm-tree-into-postgresql-making-it-as-a-data-gobbler/">talk</a>)."""

CASE = "lineitem"
SECTIONS = [Section("How fast is a load of TPC-H lineitem?", """lineitem with indexes on (l_orderkey, l_linenumber)
and on (l_shipdate), its rows in random order, by COPY, 1000 to a transaction, one client. The load generator makes
the rows after the TPC-H specification (columns, domains, lengths, 1 to 7 lines an order); they are not dbgen's.""", [
    Plot("e4-lineitem", "growth", "Rows of TPC-H lineitem loaded per second", [Part(CASE)], "rows/s",
         "rows in the table", conditions="TPC-H lineitem, shuffled, two indexes, COPY of 1000 rows, one client")])]


def plan(options):
    rows = options.rows // 20

    def work(context):
        context.create_table("lineitem", ["(l_orderkey, l_linenumber)", "(l_shipdate)"])
        context.load("lineitem", rows, limit_s=context.options.limit / 2)

    return interleave(ID, CASE, options.am, options.repeats,
                      lambda am: load_seconds(am, rows, options.limit / 2, 2.5, 1.4), work)
