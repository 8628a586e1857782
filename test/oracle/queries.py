"""Random queries that the index of a layout can answer."""

from layout import TABLE

SCAN_MODES = {
    # mode: (indexscan, indexonlyscan, bitmapscan)
    "index": ("on", "off", "off"),
    "only": ("on", "on", "off"),
    "bitmap": ("off", "off", "on"),
    "any": ("on", "on", "on"),
}


class Query:
    """A statement, its settings, and what may be compared in its rows."""

    def __init__(self, sql, mode="index", join=None, work_mem="4MB",
                 limited=False, lossy=False, ordered=()):
        self.sql = sql
        self.mode = mode
        # With LIMIT another plan may find other rows,
        self.limited = limited
        # but the same values in these columns of the output.
        self.ordered = ordered
        # One of several equal values is shown; another plan may show a
        # different one.
        self.lossy = lossy
        # Does it have a condition or an order for which the planner would use
        # an index?
        self.for_index = True
        # Which indexes use prefetching: neither, lsm, or both.
        self.prefetch = "neither"
        index, only, bitmap = SCAN_MODES[mode]
        self.settings = {
            "enable_indexscan": index,
            "enable_indexonlyscan": only,
            "enable_bitmapscan": bitmap,
            # Sort only for bitmaps. Otherwise the index must give the order.
            "enable_sort": "on" if mode == "bitmap" else "off",
            "enable_mergejoin": "on" if join in (None, "merge") else "off",
            "enable_nestloop": "on" if join in (None, "loop") else "off",
            "work_mem": f"'{work_mem}'",
        }
        self.set_workers(0)

    def set_workers(self, workers):
        """If not zero: use a parallel plan if possible."""
        self.settings.update({
            "max_parallel_workers_per_gather": workers,
            "parallel_leader_participation": "off" if workers == 2 else "on",
            # Tables are small, so make parallel plans look cheapest.
            "random_page_cost": 0 if workers else 4,
            "seq_page_cost": 0 if workers else 1,
            "cpu_operator_cost": 0 if workers else 0.0025,
        })


# Types whose equal values have the same text.
LOOK_ALIKE = {"int2", "int4", "int8", "oid", "bool", "date", "timestamp",
              "timestamptz", "time", "uuid", "text", "name", "bytea", "macaddr"}

# Settings that hold for all queries.
FIXED_SETTINGS = ("SET enable_seqscan = off; SET synchronize_seqscans = off; "
                  "SET enable_hashagg = off; SET enable_hashjoin = off; "
                  "SET enable_memoize = off; SET enable_material = off; "
                  "SET jit = off; SET parallel_setup_cost = 0; "
                  "SET parallel_tuple_cost = 0; "
                  "SET min_parallel_table_scan_size = 0; "
                  "SET min_parallel_index_scan_size = 0; ")


class QueryMaker:
    def __init__(self, layout):
        self.layout = layout
        self.rng = layout.rng
        self.keys = layout.keys
        self.order_keys = []    # of the latest ORDER BY clause

    def make(self):
        shapes = ((self.plain, 50), (self.count, 6), (self.extremes, 8),
                  (self.groups, 5), (self.distinct, 3), (self.merge_join, 6),
                  (self.loop_join, 6), (self.lateral, 6), (self.row_compare, 8),
                  (self.alternatives, 4), (self.subquery, 3))
        shape = self.rng.choices([s for s, _ in shapes],
                                 [w for _, w in shapes])[0]
        query = shape()
        if self.rng.random() < 0.15:
            query.set_workers(self.rng.randint(1, 3))
        query.prefetch = self.rng.choice(("neither", "neither", "lsm", "both"))
        return query

    # -- conditions ---------------------------------------------------------

    def where(self, alias="", dense=False):
        """A WHERE clause that fits the index, perhaps an empty one."""
        terms = self.terms(alias, dense)
        if self.layout.predicate:
            predicate = self.layout.predicate
            name = predicate.split(" ")[0]
            terms.append(predicate.replace(name, alias + name))
        return " WHERE " + " AND ".join(terms) if terms else ""

    def terms(self, alias="", dense=False):
        rng = self.rng
        terms = []
        kind = rng.random()
        if kind < (0.6 if dense else 0.12):
            return terms
        if kind < 0.27 and len(self.keys) > 1:
            return self.combinations(alias)
        if kind < 0.87:
            # Equality on some leading columns, something on the next.
            depth = rng.randint(0, len(self.keys))
            for key in self.keys[:depth]:
                terms.append(self.term(key, alias, "equal"))
            if depth < len(self.keys):
                for _ in range(rng.choice((0, 1, 1, 1, 2))):
                    terms.append(self.term(self.keys[depth], alias))
                for key in self.keys[depth + 1:]:
                    if rng.random() < 0.3:
                        terms.append(self.term(key, alias))
        else:
            for _ in range(rng.randint(1, 3)):
                terms.append(self.term(rng.choice(self.keys), alias))
        return terms

    def combinations(self, alias):
        """Lists on several columns, and columns that have to be skipped."""
        rng = self.rng
        terms = []
        for key in self.keys[:-1]:
            kind = rng.choices(("list", "=", "range", "between", "not null",
                                None), (4, 1, 1, 2, 1, 5))[0]
            if kind:
                terms.append(self.term(key, alias, kind))
        terms.append(self.term(self.keys[-1], alias, rng.choice(
            ("list", "list", "=", "=", "range", "between", "null"))))
        return terms

    def term(self, key, alias="", kind=None):
        rng = self.rng
        text = key.sql(alias)
        if kind == "equal":
            kind = rng.choices(("=", "list", "null"), (8, 2, 1))[0]
        else:
            kind = kind or rng.choices(
                ("=", "range", "between", "list", "compare list", "null",
                 "not null", "like", "not equal", "compare null"),
                (5, 12, 6, 5, 2, 3, 3, 3, 1, 0.4))[0]
        if kind == "null":
            return f"{text} IS NULL"
        if kind == "not null":
            return f"{text} IS NOT NULL"
        if kind == "=":
            return f"{text} {key.operator('=')} {key.literal(rng)}"
        if kind == "between":
            low, high = self.ordered_pair(key)
            return (f"{text} {key.operator(rng.choice(('>', '>=')))} {low} AND "
                    f"{text} {key.operator(rng.choice(('<', '<=')))} {high}")
        if kind in ("list", "compare list") and key.type.listable:
            sign = "=" if kind == "list" else rng.choice(("<", "<=", ">", ">="))
            return self.list_term(key, text, sign)
        if kind == "like" and key.is_column and key.type.like:
            return self.like_term(key, text)
        if kind == "not equal":
            return f"{text} <> {key.literal(rng)}"
        if kind == "compare null":
            return f"{text} {key.operator('=')} {key.type.literal(None)}" \
                if key.is_column else f"{text} IS NOT NULL"
        sign = rng.choice(("<", "<=", ">", ">="))
        return f"{text} {key.operator(sign)} {key.literal(rng)}"

    def ordered_pair(self, key):
        """Two constants; numbers in order, others in any order."""
        rng = self.rng
        values = [key.column.probe(rng), key.column.probe(rng)]
        try:
            values.sort(key=float)
        except ValueError:
            values.sort()
        if rng.random() < 0.1:
            values.reverse()
        return [key.literal(rng, value) for value in values]

    def list_term(self, key, text, sign):
        rng = self.rng
        count = rng.choice((0, 1, 2, 2, 3, 5, 9, 30))
        values = [key.column.probe(rng) for _ in range(count)]
        target = None
        if key.is_column and key.type.cross and rng.random() < 0.3:
            target = rng.choice(key.type.cross)
            if not all(key.type.fits(value, target) for value in values):
                target = None
        items = [key.template.format(key.type.literal(value, target))
                 for value in values]
        if key.is_column and rng.random() < 0.15:
            items.append(key.type.literal(None, target))
        if not items:
            return (f"{text} {key.operator(sign)} ANY "
                    f"('{{}}'::{target or key.type.cast}[])"
                    if key.is_column else f"{text} IS NULL")
        return (f"{text} {key.operator(sign)} ANY "
                f"(ARRAY[{', '.join(items)}])")

    def like_term(self, key, text):
        rng = self.rng
        prefix = key.column.probe(rng)[:rng.randint(0, 4)]
        for special in "\\%_":
            prefix = prefix.replace(special, "\\" + special)
        return f"{text} LIKE " + key.type.literal(prefix + "%", "text")

    # -- the rest of a query ------------------------------------------------

    def order(self, alias="", full=False):
        """An ORDER BY clause that the index gives, forward or backward."""
        rng = self.rng
        self.order_keys = []
        if not full and rng.random() < 0.25:
            return ""
        depth = len(self.keys)
        if not full and rng.random() < 0.3:
            depth = rng.randint(1, depth)
        backward = rng.random() < 0.5
        self.order_keys = self.keys[:depth]
        return " ORDER BY " + ", ".join(key.order(backward, alias)
                                        for key in self.order_keys)

    def ordered(self, output):
        """Columns of the output that the latest ORDER BY clause determines.

        These are the leading keys, as long as equal values look alike.
        """
        names = output.split(", ")
        found = []
        for key in self.order_keys:
            if (not key.is_column or key.type.name not in LOOK_ALIKE
                    or key.column.name not in names):
                break
            found.append(names.index(key.column.name))
        return found

    def limit(self):
        rng = self.rng
        text = ""
        if rng.random() < 0.35:
            text += f" LIMIT {rng.choice((0, 1, 1, 2, 3, 5, 10, 50))}"
        if rng.random() < 0.1:
            text += f" OFFSET {rng.choice((0, 1, 2, 10, 100))}"
        return text

    def output(self, mode, alias=""):
        names = self.layout.index_only_columns()
        if mode == "only" and names:
            chosen = self.rng.sample(names, self.rng.randint(1, len(names)))
            return ", ".join(alias + name for name in dict.fromkeys(chosen))
        return ", ".join(alias + name for name in
                         ["ctid"] + self.layout.column_names())

    def mode(self):
        return self.rng.choices(("index", "only", "bitmap", "any"),
                                (4, 4, 2, 1))[0]

    def plain(self):
        mode = self.mode()
        limit = self.limit()
        output = self.output(mode)
        where = self.where()
        order = self.order()
        query = Query(f"SELECT {output} FROM {TABLE}{where}{order}{limit}",
                      mode, limited=bool(limit), ordered=self.ordered(output),
                      work_mem=self.rng.choice(("4MB", "64kB")))
        # A bitmap scan needs a condition. The planner may also choose an
        # index-only scan because of its columns.
        query.for_index = bool(where) or mode != "bitmap" and (
            bool(order)
            or mode == "only" and bool(self.layout.index_only_columns()))
        return query

    def count(self):
        return Query(f"SELECT count(*) FROM {TABLE}{self.where()}",
                     self.mode())

    def extremes(self):
        keys = [key for key in self.keys
                if key.is_column and key.type.minmax and not key.type.opclass]
        if not keys:
            return self.count()
        key = self.rng.choice(keys)
        functions = self.rng.choice((("min",), ("max",), ("min", "max")))
        items = ", ".join(f"{f}({key.sql()})" for f in functions)
        return Query(f"SELECT {items} FROM {TABLE}{self.where()}",
                     self.rng.choice(("index", "only")), lossy=True)

    def groups(self):
        first = self.keys[0].sql()
        order = self.keys[0].order(self.rng.random() < 0.5)
        if " USING " in order:
            return self.count()
        return Query(f"SELECT {first}, count(*) FROM {TABLE}{self.where()}"
                     f" GROUP BY {first} ORDER BY {order}", self.mode(),
                     lossy=True)

    def distinct(self):
        keys = self.keys[:self.rng.randint(1, len(self.keys))]
        order = [key.order() for key in keys]
        if any(" USING " in item for item in order):
            return self.count()
        items = ", ".join(key.sql() for key in keys)
        return Query(f"SELECT DISTINCT {items} FROM {TABLE}{self.where()}"
                     f" ORDER BY {', '.join(order)}", self.mode(), lossy=True)

    def merge_join(self):
        """A join that needs marked positions of the inner index scan."""
        depth = self.rng.randint(1, len(self.keys))
        on = " AND ".join(f"{key.sql('a.')} {key.operator('=')} {key.sql('b.')}"
                          for key in self.keys[:depth])
        parts = []
        for alias in ("a.", "b."):
            where = self.where(alias).replace(" WHERE ", "", 1)
            if where:
                parts.append(where)
            parts.append(f"{alias}id % {self.rng.choice((1, 2, 3, 5))} = 0")
        sql = (f"SELECT a.ctid, b.ctid FROM {TABLE} a JOIN {TABLE} b ON {on}"
               f" WHERE {' AND '.join(parts)} LIMIT 1500")
        return Query(sql, self.rng.choice(("index", "index", "any")),
                     join="merge", limited=True)

    def loop_join(self):
        """The index is searched repeatedly."""
        key = self.keys[0]
        mode = self.mode()
        values = ", ".join(f"({n}, {key.literal(self.rng, cast=False)})"
                           for n in range(self.rng.randint(1, 12)))
        sign = key.operator(self.rng.choice(("=", "=", "=", "<", ">=")))
        where = self.where("t.").replace(" WHERE ", " AND ", 1)
        # A separate name for the value's column keeps collations apart.
        sql = (f"SELECT v.n, {self.output(mode, 't.')} FROM "
               f"(VALUES {values}) AS v(n, x) JOIN {TABLE} ON "
               f"{key.sql('t.')} {sign} v.x{where} LIMIT 1500")
        return Query(sql, mode, join="loop", limited=True)

    def lateral(self):
        key = self.keys[0]
        values = ", ".join(f"({n}, {key.literal(self.rng, cast=False)})"
                           for n in range(self.rng.randint(1, 9)))
        sign = key.operator(self.rng.choice(("=", "<", "<=", ">", ">=")))
        where = self.where("t.").replace(" WHERE ", " AND ", 1)
        sql = (f"SELECT v.n, s.* FROM (VALUES {values}) AS v(n, x), LATERAL "
               f"(SELECT {self.output('index', 't.')} FROM {TABLE} WHERE "
               f"{key.sql('t.')} {sign} v.x{where}{self.order('t.', True)}"
               f" LIMIT {self.rng.choice((1, 2, 7))}) AS s")
        return Query(sql, "index", join="loop", limited=True)

    def row_compare(self):
        """A comparison of some adjacent columns, perhaps after equal ones."""
        rng = self.rng
        keys = [key for key in self.keys if key.operator("<") == "<"]
        if len(keys) < 2 or len({key.column for key in keys}) < len(keys):
            return self.plain()
        first = rng.randint(0, len(keys) - 2) if rng.random() < 0.3 else 0
        terms = [self.term(key, kind="equal") for key in keys[:first]]
        for _ in range(rng.choice((1, 1, 1, 2))):
            row = keys[first:rng.randint(first + 2, len(keys))]
            if rng.random() < 0.1:
                rng.shuffle(row)
            left = ", ".join(key.sql() for key in row)
            right = ", ".join("NULL" if rng.random() < 0.05 else
                              key.literal(rng, cast=False) for key in row)
            sign = rng.choice(("<", "<=", ">", ">="))
            terms.append(f"({left}) {sign} ({right})" if rng.random() < 0.8
                         else f"({right}) {sign} ({left})")
        if rng.random() < 0.3:
            terms.append(self.term(rng.choice(self.keys)))
        if self.layout.predicate:
            terms.append(self.layout.predicate)
        mode = self.mode()
        self.order_keys = []
        order = "" if mode == "bitmap" else self.order(full=True)
        limit = self.limit()
        output = self.output(mode)
        return Query(f"SELECT {output} FROM {TABLE}"
                     f" WHERE {' AND '.join(terms)}{order}{limit}", mode,
                     limited=bool(limit), ordered=self.ordered(output))

    def alternatives(self):
        key = self.keys[0]
        terms = " OR ".join(self.term(key) for _ in range(2))
        where = f" WHERE ({terms})"
        if self.layout.predicate:
            where += " AND " + self.layout.predicate
        return Query(f"SELECT {self.output('bitmap')} FROM {TABLE}{where}",
                     "bitmap")

    def subquery(self):
        key = self.keys[0]
        negation = self.rng.choice(("", "NOT "))
        where = self.where("a.").replace(" WHERE ", "", 1)
        inner = self.where("b.").replace(" WHERE ", " AND ", 1)
        sql = (f"SELECT a.ctid, a.id FROM {TABLE} a WHERE "
               f"{where + ' AND ' if where else ''}{negation}EXISTS (SELECT "
               f"FROM {TABLE} b WHERE {key.sql('b.')} {key.operator('=')} "
               f"{key.sql('a.')} AND b.id <> a.id{inner})"
               f" AND a.id % 3 = 0 LIMIT 300")
        return Query(sql, self.rng.choice(("index", "any")), limited=True)


class CursorScript:
    """A cursor's query and the steps that fetch from it."""

    def __init__(self, maker):
        rng = maker.rng
        mode = rng.choice(("index", "index", "only", "bitmap"))
        self.sql = (f"SELECT {maker.output(mode)} FROM {TABLE}"
                    f"{maker.where(dense=True)}{maker.order()}")
        self.query = Query(self.sql, mode)
        self.query.prefetch = rng.choice(("neither", "both"))
        self.steps = []
        for _ in range(rng.randint(4, 25)):
            count = rng.choice((1, 1, 2, 3, 7, 20, 100))
            self.steps.append(rng.choices(
                (f"FETCH FORWARD {count}", f"FETCH BACKWARD {count}",
                 "FETCH FIRST", "FETCH LAST", "FETCH FORWARD ALL",
                 "FETCH BACKWARD ALL", f"FETCH ABSOLUTE {count}",
                 f"FETCH RELATIVE {rng.randint(-5, 5)}",
                 f"MOVE FORWARD {count}", f"MOVE BACKWARD {count}", "change"),
                (10, 8, 0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 6))[0])
