"""Small indexes of many shapes, and the questions that a damaged index must answer."""

# A type, and a value of it for a number {n}.
TYPES = (
    ("int", "{n}"),
    ("int8", "{n} * 10000000000 - 500"),
    ('text COLLATE "C"', "'key ' || {n}"),
    ('text COLLATE "C"', "repeat('k' || {n}, 20 + {n} % 60)"),
    ("numeric", "({n}) / 8.0"),
    ("uuid", "md5(({n})::text)::uuid"),
    ("float8", "({n}) / 4.0::float8"),
    ("timestamptz", "'2026-01-01'::timestamptz + ({n}) * interval '1 hour'"),
    ("bytea", "decode(md5(({n})::text), 'hex')"),
    ("inet", "'10.0.0.0'::inet + ({n})"),
    ("name", "('name' || {n})::name"),
)
# Functions compare values of these.
COMPARED = (
    ("int[]", "ARRAY[{n}, 5]"),
    ("text[]", "ARRAY['a' || {n}, repeat('b', ({n}) % 50)]"),
    ("int4range", "int4range({n}, ({n}) + 10)"),
    ("jsonb", "to_jsonb('v' || {n})"),
    ("text COLLATE linguistic", "'Key ' || {n}"),
)
OFF = ("SET enable_seqscan = {}; SET enable_indexscan = {}; "
       "SET enable_indexonlyscan = {}; SET enable_bitmapscan = {}; ")
SEQ = OFF.format("on", "off", "off", "off")
PLAIN = OFF.format("off", "on", "off", "off")
ONLY = OFF.format("off", "on", "on", "off")
BITMAP = OFF.format("off", "off", "off", "on")
SETUP = """DO $$ BEGIN
    CREATE COLLATION linguistic (provider = icu, locale = 'und');
EXCEPTION WHEN OTHERS THEN      -- there is no ICU
    CREATE COLLATION linguistic FROM "C";
END $$"""
SESSION = ("SET max_parallel_workers_per_gather = 0; SET enable_hashjoin = off; "
           "SET enable_mergejoin = off; SET enable_material = off; "
           "SET statement_timeout = '20s'")


class Query:
    """A question whose answer is one value: asked with the index, and with a scan of the table."""

    def __init__(self, what, settings, sql, by_table=None):
        self.what = what
        self.sql = settings + sql
        self.by_table = SEQ + (by_table or sql)
        self.answer = None


class Index:
    """A table and its index."""

    def __init__(self, number, rng):
        self.rng = rng
        self.table = f"d{number}"
        self.name = f"d{number}_idx"
        self.type, self.value = rng.choice(TYPES + TYPES + COMPARED)
        self.unique = rng.random() < 0.3
        self.second = rng.random() < 0.4
        self.include = rng.choice(("", "", "", "", "id", "id, pad"))
        self.has_tuples = (self.type, self.value) in COMPARED or self.include != ""
        self.rows = rng.randrange(80, 260)
        self.path = self.older = None
        segment = rng.choice((1, 2, 3, 16, 16, 64))
        self.settings = {
            "debug_merge_fanout": rng.choice((2, 3, 3, 16)),
            "debug_segment_size": segment,
            "debug_page_entries": rng.choice((0, 3, 10) if segment < 16 else (3, 8, 12)),
            "debug_buffer_entries": rng.choice((0, 5, 12, 30)),
            "debug_open_pages": rng.choice((1, 1, 2)),
            "debug_batch_min_entries": 4}
        # What a row with a number has: values recur unless the index is unique.
        self.modulus = 100003 if self.unique else rng.choice((7, 60, 1000))
        self.source = f"({{}} * {7919 if self.unique else 37}) % {self.modulus}"

    def describe(self):
        settings = ", ".join(f"{k} = {v}" for k, v in self.settings.items())
        return f"{self.definition()} of {self.type} [{settings}]"

    def definition(self):
        return (f"CREATE {'UNIQUE ' if self.unique else ''}INDEX {self.name} ON "
                f"{self.table} USING lsm ({self._columns()})"
                + (f" INCLUDE ({self.include})" if self.include else ""))

    def _columns(self):
        return "k, j DESC" if self.second else "k"

    def _key(self, number):
        """The value for a number (SQL)."""
        return self.value.format(n="(" + number + ")")

    def row(self, number):
        """The columns of a row (SQL)."""
        key = self._key(self.source.format(number))
        if not self.unique:
            key = f"CASE WHEN {number} % 23 > 0 THEN {key} END"
        return f"{key}, 's' || {number} % 5, {number}, repeat('p', {number} % 40)"

    # --- making it

    def begin(self):
        """Statements that make the table and the index, and the first half of the rows."""
        create = (f"CREATE TABLE {self.table} (k {self.type}, j text COLLATE \"C\", id int, "
                  "pad text) WITH (autovacuum_enabled = off)")
        load = self._load(1, self.rows // 2)
        if self.rng.random() < 0.3:
            return [*self._set(), create, *load, self.definition()]
        return [*self._set(), create, self.definition(), *load]

    def go_on(self):
        """Statements that make the rest: deletions, merges, pages of the write buffer."""
        rng = self.rng
        found = self._set() + self._load(self.rows // 2 + 1, self.rows)
        if rng.random() < 0.6:
            found += [f"DELETE FROM {self.table} WHERE id % {rng.choice((2, 5, 10))} = 0",
                      f"VACUUM {self.table}"]
        if rng.random() < 0.5:
            found.append(f"SELECT lsm_compact('{self.name}')")
        for _ in range(rng.choice((0, 1, 2))):
            number = self.rows + 1
            self.rows += rng.choice((1, 6, 30))
            found += self._load(number, self.rows)
        return found + [f"VACUUM {self.table}"]

    def _set(self):
        return [f"SET pg_lsm.{k} = {v}" for k, v in self.settings.items()]

    def _load(self, first, last):
        found = []
        while first <= last:
            end = min(last, first + self.rng.choice((4, 15, 40, 100)))
            found.append(f"SET pg_lsm.batch_inserts = {self.rng.choice(('on', 'off'))}; "
                         f"INSERT INTO {self.table} SELECT {self.row('n')} "
                         f"FROM generate_series({first}, {end}) n")
            first = end + 1
        return found

    # --- asking it

    def queries(self, rng):
        """Questions whose answers no damage may change unnoticed."""
        order = ("k, j DESC", "k DESC, j") if self.second else ("k", "k DESC")
        known = ("k, j" if self.second else "k") + (f", {self.include}" if self.include else "")
        low, high = sorted(rng.randrange(min(self.modulus, 400)) for _ in range(2))
        first = rng.randrange(self.rows)
        some = f"k >= {self._key(str(low))} AND k <= {self._key(str(high + 1))}"
        found = [
            self._ordered("rows in order", PLAIN, "*", "true", order[0], ""),
            self._ordered("rows backward", PLAIN, "*", "true", order[1], ""),
            self._ordered("index only", ONLY, known, "true", order[0], ""),
            self._ordered("index only backward", ONLY, known, "true", order[1], ""),
            self._ordered("range", PLAIN, "*", some, order[0], ""),
            self._ordered("range backward", PLAIN, "*", some, order[1], "LIMIT 7"),
            self._lookups("lookups", self._key(self.source.format("g")), first),
            self._lookups("lookups of others", self._key("g"), first)]
        for what, condition in (("bitmap", some), ("nulls", "k IS NULL"), ("bitmap of all", "k IS NOT NULL")):
            found.append(Query(what, BITMAP, f"SELECT count(*) || ' ' || coalesce(sum(id), 0) "
                                             f"FROM {self.table} WHERE {condition}"))
        rng.shuffle(found)
        return found

    def _ordered(self, what, settings, columns, condition, order, limit):
        # Equal keys are in the order of their TIDs.
        tid = "ctid DESC" if "k DESC" in order else "ctid"
        sql = (f"SELECT coalesce(md5(string_agg(x::text, ' ')), '') FROM (SELECT {columns} "
               f"FROM {self.table} WHERE {condition} ORDER BY {{}} {limit}) x")
        return Query(what, settings, sql.format(order), sql.format(f"{order}, {tid}"))

    def _lookups(self, what, key, first):
        return Query(what, PLAIN, "SELECT coalesce(md5(string_agg(x::text, ' ')), '') FROM "
                                  f"generate_series({first}, {first + 12}) g, LATERAL "
                                  f"(SELECT id, j FROM {self.table} WHERE k = {key} "
                                  "ORDER BY ctid) x")

    def after_deletion(self):
        """The rows that are left once every seventh has been deleted."""
        order = "k, j DESC" if self.second else "k"
        query = self._ordered("rows after VACUUM", PLAIN, "*", "true", order, "")
        query.by_table = query.by_table.replace("WHERE true", "WHERE id % 7 <> 0")
        return query

    def insertion(self):
        """Inserts rows whose keys are there, and as many others. Returns the number of those inserted."""
        numbers = f"generate_series({self.rows - 19}, {self.rows + 20}) n"
        conflict = "ON CONFLICT (k, j) DO NOTHING" if self.second else "ON CONFLICT (k) DO NOTHING"
        return (f"WITH i AS (INSERT INTO {self.table} SELECT {self.row('n')} FROM {numbers} "
                f"{conflict if self.unique else ''} RETURNING 1) SELECT count(*) FROM i")

    def insertion_count(self):
        """How many rows insertion() must insert (SQL)."""
        if not self.unique:
            return "SELECT 40"
        return (f"{SEQ} SELECT 40 - count(*) FROM {self.table} WHERE id BETWEEN "
                f"{self.rows - 19} AND {self.rows + 20}")
