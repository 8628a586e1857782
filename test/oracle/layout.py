"""Random tables and the pair of indexes on them.

One table carries both indexes, a btree and an lsm, over the same columns.  So
every operation reaches both, TIDs are the same by construction, and only the
planner's choice has to be switched from one to the other.
"""

from datatypes import COMMON, COMPOSITES, TYPES
from pgwire import copy_field

TABLE = "t"
BTREE = "t_bt"
LSM = "t_ix"

# Types of columns whose values may grow from row to row.
RISING = ("int4", "int8", "oid", "numeric")

# Settings that make many runs and levels from few rows.
LIMITS = (
    ("pg_lsm.debug_merge_fanout", (2, 2, 3, 4, 8)),
    ("pg_lsm.debug_buffer_entries", (1, 2, 3, 4, 7, 12, 30, 0)),
    ("pg_lsm.debug_open_pages", (1, 1, 1, 2, 3, 8)),
    ("pg_lsm.debug_page_entries", (1, 2, 3, 5, 8, 17, 40, 0)),
    ("pg_lsm.debug_foreground_blocks", (0, 0, 1, 4, 16, 128)),
    ("pg_lsm.debug_segment_size", (1, 2, 4, 6, 20, 64, 64, 0)),
    ("pg_lsm.batch_inserts", ("on", "on", "on", "off")),
    ("pg_lsm.debug_batch_min_entries", (1, 1, 2, 5, 20, 48)),
    ("pg_lsm.debug_batch_entries", (1, 2, 5, 20, 60, 0)),
)


class Column:
    """A column and the pool that its values mostly come from."""

    def __init__(self, rng, name, datatype, long, rising):
        self.name = name
        self.type = datatype
        self.long = long if datatype.wide else 0
        size = rng.choice((1, 3, 8, 20, 60, 200))
        self.pool = [datatype.make(rng, self.long) for _ in range(size)]
        self.nulls = rng.choice((0, 0, 0.02, 0.1, 0.4))
        self.fresh = rng.choice((0, 0.1, 0.5, 1))
        self.rising = (datatype.name in RISING
                       and (rising or rng.random() < 0.2))
        self.last = 0

    def value(self, rng):
        """A value for a new row."""
        if rng.random() < self.nulls:
            return None
        if self.rising:
            self.last += rng.choice((0, 1, 1, 2))
            return str(self.last)
        if rng.random() < self.fresh:
            value = self.type.make(rng, self.long)
            if rng.random() < 0.3:
                self.pool[rng.randrange(len(self.pool))] = value
            return value
        return rng.choice(self.pool)

    def probe(self, rng):
        """A value to search for; never NULL."""
        if self.rising and rng.random() < 0.8:
            return str(rng.randint(-1, self.last + 1))
        if rng.random() < 0.8:
            return rng.choice(self.pool)
        return self.type.make(rng, self.long)


class Key:
    """A key column of the index: a column, or an expression of one."""

    def __init__(self, rng, column, allow_expression):
        self.column = column
        self.template = "{}"
        self.type = column.type
        self.sql_type = column.type.sql
        if allow_expression:
            self._make_expression(rng)
        self.descending = rng.random() < 0.4
        self.nulls_first = (self.descending if rng.random() < 0.6
                            else not self.descending)

    @property
    def is_column(self):
        return self.template == "{}"

    def _make_expression(self, rng):
        name = self.column.type.name
        if name in ("int2", "int4", "int8"):
            self.template = rng.choice(("({} % 7)", "({}::numeric + 1)",
                                        "({} IS NULL)"))
        elif self.column.type.sql == "text" and not self.column.type.opclass:
            self.template = rng.choice(("lower({})", "length({})",
                                        "({} || 'x')"))
        elif name in ("numeric", "float8"):
            self.template = rng.choice(("(- {})", "abs({})"))

    @property
    def tests_null(self):
        """Can an index answer IS NULL? For a composite value, IS NULL concerns
        its fields."""
        return not (self.is_column and self.sql_type in COMPOSITES)

    def sql(self, alias=""):
        return self.template.format(alias + self.column.name)

    def literal(self, rng, value=None, cast=True):
        """A constant to compare with, at times of another type."""
        if value is None:
            value = self.column.probe(rng)
        kind = self.type
        target = None
        if cast and self.is_column and kind.cross and rng.random() < 0.3:
            target = rng.choice(kind.cross)
            if not kind.fits(value, target):
                target = None
        return self.template.format(kind.literal(value, target))

    def definition(self):
        text = self.sql()
        if not self.is_column and not text.startswith("("):
            text = f"({text})"
        if self.is_column and self.type.opclass:
            text += " " + self.type.opclass
        return text + self.direction()

    def direction(self, backward=False):
        """The ORDER BY suffix."""
        descending = self.descending != backward
        nulls_first = self.nulls_first != backward
        text = " DESC" if descending else ""
        if nulls_first != descending:
            text += " NULLS FIRST" if nulls_first else " NULLS LAST"
        return text

    def order(self, backward=False, alias=""):
        """An ORDER BY item that this key column gives."""
        using = ""
        if self.is_column and self.type.opclass.endswith("pattern_ops"):
            down = self.descending != backward
            using = " USING " + ("~>~" if down else "~<~")
            nulls_first = self.nulls_first != backward
            return (self.sql(alias) + using
                    + (" NULLS FIRST" if nulls_first else " NULLS LAST"))
        if self.is_column and self.type.opclass == "record_image_ops":
            down = self.descending != backward
            nulls_first = self.nulls_first != backward
            return (self.sql(alias) + " USING " + ("*>" if down else "*<")
                    + (" NULLS FIRST" if nulls_first else " NULLS LAST"))
        return self.sql(alias) + self.direction(backward)

    def operator(self, name):
        """The spelling of < <= = >= > in the key's operator class."""
        if self.is_column and self.type.opclass.endswith("pattern_ops"):
            return {"<": "~<~", "<=": "~<=~", ">=": "~>=~",
                    ">": "~>~"}.get(name, name)
        if self.is_column and self.type.opclass == "record_image_ops":
            return "*" + name
        return name


class Layout:
    """A table with its indexes, and the rows to put into it."""

    def __init__(self, rng, am="lsm", types=None, unavailable=()):
        self.am = am
        self.rng = rng
        self.next_id = 1
        self.id_step = 1        # clients that share a table number in turn
        usable = [t for t in TYPES
                  if t.collation not in unavailable and t.sql not in unavailable]
        if types:
            usable = [t for t in usable if t.name in types]
        self.columns = self._random_columns(usable)
        self._random_index()
        # Half of the unique indexes treat nulls as equal.
        self.unique = rng.choices(("", "UNIQUE", "UNIQUE NULLS NOT DISTINCT"),
                                  (6, 1, 1))[0]
        self.persistence = rng.choices(("", "UNLOGGED ", "TEMP "),
                                       (10, 1, 1))[0]
        self.fillfactor = rng.choice((100, 100, 60))

    def _random_columns(self, usable):
        rng = self.rng
        common = [t for t in usable if t.name in COMMON] or usable
        count = rng.choices((1, 2, 3, 4), (3, 4, 3, 2))[0]
        self.long = rng.choice((30, 30, 400, 1600, 2560))
        long = self.long // count
        rising = rng.random() < 0.2     # rows come in the order of the keys
        if rising:
            common = [t for t in common if t.name in RISING] or common
        return [Column(rng, f"k{i + 1}", rng.choice(
                    common if rising or rng.random() < 0.5 else usable),
                       long, rising)
                for i in range(count)]

    def _random_index(self):
        rng = self.rng
        chosen = self.columns[:]
        rng.shuffle(chosen)
        chosen = chosen[:rng.randint(1, len(chosen))]
        # The same column twice. A B-tree has no room for two long values.
        if rng.random() < 0.05 and self.long < 1600:
            chosen.append(rng.choice(chosen))
        self.keys = [Key(rng, column, rng.random() < 0.12)
                     for column in chosen]
        self.include = []
        if rng.random() < 0.35:
            spare = [c.name for c in self.columns if c not in chosen]
            spare += ["id", "sel", "note"]
            self.include = rng.sample(spare, rng.randint(1, min(3, len(spare))))
        self.predicate = ""
        if rng.random() < 0.2:
            self.predicate = rng.choice(
                ("sel < 6", "sel <> 3", f"{chosen[0].name} IS NOT NULL"))

        # With few bits filters often answer "perhaps" wrongly, but never
        # "absent".
        self.filter_bits = rng.choice((None, None, 0, 1, 2, 32))
        self.filter_prefix = rng.choice((None, None, None, 0, 1, 2))

    @property
    def limits(self):
        """Random settings; new ones each time."""
        return [f"SET {name} = {self.rng.choice(values)}"
                for name, values in LIMITS]

    def create_table(self):
        columns = ["id int4", "sel int2", "note text"]
        for column in self.columns:
            collate = column.type.collation
            columns.append(f"{column.name} {column.type.sql}"
                           + (f' COLLATE "{collate}"' if collate else ""))
        return (f"CREATE {self.persistence}TABLE {TABLE} ("
                + ", ".join(columns) + ")"
                + f" WITH (fillfactor = {self.fillfactor})")

    def create_index(self, name, concurrently=False):
        method = "btree" if name == BTREE else self.am
        text = f"CREATE {'UNIQUE ' if self.unique else ''}INDEX "
        text += "CONCURRENTLY " if concurrently else ""
        text += f"{name} ON {TABLE} USING {method} ("
        text += ", ".join(key.definition() for key in self.keys) + ")"
        if self.include:
            text += " INCLUDE (" + ", ".join(self.include) + ")"
        if self.unique.endswith("DISTINCT"):
            text += " NULLS NOT DISTINCT"
        if method == "btree":
            # Backward scans of posting lists give equal keys in ascending
            # order of TID, which depends on when lists were made.
            text += " WITH (deduplicate_items = off)"
        elif method == "lsm":
            options = [f"{name} = {value}" for name, value in
                       (("filter_bits", self.filter_bits),
                        ("filter_prefix", self.filter_prefix))
                       if value is not None]
            text += f" WITH ({', '.join(options)})" if options else ""
        if self.predicate:
            text += " WHERE " + self.predicate
        return text

    def describe(self):
        return (", ".join(f"{c.name} {c.type.name}" for c in self.columns)
                + "; " + self.unique + " " + self.create_index(LSM).split(" USING ")[1])

    def row(self):
        """Values in the order of column_names()."""
        rng = self.rng
        values = [str(self.next_id), str(rng.randint(0, 9)),
                  rng.choice((None, "", "n" * rng.randint(1, 30)))]
        self.next_id += self.id_step
        return values + [column.value(rng) for column in self.columns]

    def column_names(self):
        return ["id", "sel", "note"] + [c.name for c in self.columns]

    def row_sql(self):
        """A row for VALUES."""
        values = self.row()
        items = [values[0], values[1],
                 "NULL" if values[2] is None else f"'{values[2]}'"]
        for column, value in zip(self.columns, values[3:]):
            items.append(column.type.literal(value))
        return "(" + ", ".join(items) + ")"

    def row_copy(self):
        """A line for COPY."""
        return "\t".join(copy_field(value) for value in self.row())

    def twins(self):
        """A query for keys that several rows have. None if GROUP BY uses
        another equality than the index."""
        if any(key.is_column and key.type.opclass == "record_image_ops"
               for key in self.keys):
            return None
        names = ", ".join(key.sql() for key in self.keys)
        conditions = [self.predicate] if self.predicate else []
        if not self.unique.endswith("DISTINCT"):
            conditions += [f"num_nulls({key.sql()}) = 0"
                           for key in self.keys]
        where = " WHERE " + " AND ".join(conditions) if conditions else ""
        return (f"SELECT count(*) FROM {TABLE}{where} GROUP BY {names}"
                " HAVING count(*) > 1")

    def index_only_columns(self):
        """Columns that an index-only scan can return."""
        if not all(key.is_column for key in self.keys):
            return []
        return [key.column.name for key in self.keys] + self.include
