"""Experiment 4: Jin's, TPC-H lineitem in random order."""

from ..figures import Figure, Panel
from ..plan import interleave, load_seconds

ID, NAME = "4", "lineitem"
TITLE = "TPC-H lineitem, shuffled"
SOURCE = """Shichao Jin, "Introducing LSM-tree into PostgreSQL, making it as a data gobbler", PGCon 2020
(<a href="https://www.pgcon.org/events/pgcon_2020/schedule/session/18-introducing-lsm-tree-into-postgresql-making-it-as-a-data-gobbler/">talk</a>)."""
WHAT = """lineitem with indexes on (l_orderkey, l_linenumber) and on (l_shipdate), its rows in random order, by COPY,
1000 to a transaction, one client. The rows are made by the load generator after the TPC-H specification (columns,
domains, lengths, 1 to 7 lines an order), they are not dbgen's. tools/demo.sh does the same with real ones and
compares the answers."""
READ = "Rows a second over table size; bars: the average and its spread."

CASE = "lineitem"
FIGURES = [Figure("e4-lineitem", "TPC-H lineitem, shuffled, two indexes", [
    Panel("throughput", "over table size", [CASE], xlabel="rows in the table", ylabel="rows/s"),
    Panel("bars", "average", [CASE], "rows/s", ylabel="rows/s")])]


def plan(options):
    rows = options.rows // 20

    def work(context):
        context.create_table("lineitem", ["(l_orderkey, l_linenumber)", "(l_shipdate)"])
        context.load("lineitem", rows, limit_s=context.options.limit / 2)

    return interleave(ID, CASE, options.am, options.repeats,
                      lambda am: load_seconds(am, rows, options.limit / 2, 2.5, 1.4), work)
