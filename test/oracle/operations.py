"""Random changes of the table, and maintenance."""

from layout import BTREE, LSM, TABLE


class Operations:
    """Runs random changes on a connection.

    A statement that fails in an expected way (an entry too long, say) is no
    fault.  The caller's `run` decides what is expected.
    """

    def __init__(self, layout, maker, run, copy):
        self.layout = layout
        self.maker = maker
        self.rng = layout.rng
        self.run = run          # run(sql) -> bool: whether it succeeded
        self.copy = copy        # copy(sql, lines) -> bool

    # -- changes ------------------------------------------------------------

    def change(self, small=False):
        """One change, inside or outside of a transaction."""
        rng = self.rng
        choices = [(self.insert, 6), (self.insert_batch, 5),
                   (self.update_keys, 4), (self.update_note, 2),
                   (self.delete, 3), (self.duplicate, 1),
                   (self.change_by_key, 2), (self.inner_blocks, 1)]
        if not small:
            choices += [(self.insert_copy, 4)]
        if self.layout.unique:
            choices += [(self.insert_unless_there, 6)]
        rng.choices([c for c, _ in choices], [w for _, w in choices])[0]()

    def insert_unless_there(self):
        """Rows, some of whose keys may exist."""
        rows = [self.layout.row_sql()
                for _ in range(self.rng.choice((1, 1, 5, 30, 60)))]
        self.run(f"INSERT INTO {TABLE} VALUES " + ", ".join(rows)
                 + " ON CONFLICT DO NOTHING")

    def insert(self):
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            self.run(f"INSERT INTO {TABLE} VALUES {self.layout.row_sql()}")

    def insert_batch(self):
        rows = [self.layout.row_sql() for _ in range(self.rng.randint(2, 40))]
        self.run(f"INSERT INTO {TABLE} VALUES " + ", ".join(rows))

    def insert_copy(self, count=None):
        count = count or self.rng.choice((20, 60, 150, 400))
        self.copy(f"COPY {TABLE} FROM STDIN",
                  [self.layout.row_copy() for _ in range(count)])

    def duplicate(self):
        """Rows with the keys of other rows."""
        names = ", ".join(self.layout.column_names())
        self.run(f"INSERT INTO {TABLE} ({names}) SELECT {names} FROM {TABLE}"
                 f" WHERE {self.some_rows()} ORDER BY id, ctid"
                 f" LIMIT {self.rng.choice((1, 10, 60))}")

    def update_keys(self):
        rng = self.rng
        columns = rng.sample(self.layout.columns,
                             rng.randint(1, len(self.layout.columns)))
        items = [f"{c.name} = {c.type.literal(c.value(rng))}" for c in columns]
        self.run(f"UPDATE {TABLE} SET {', '.join(items)}"
                 f" WHERE {self.some_rows()}")

    def update_note(self):
        """Mostly leaves the index alone (HOT)."""
        self.run(f"UPDATE {TABLE} SET note = 'u' || id"
                 f" WHERE {self.some_rows()}")

    def delete(self):
        self.run(f"DELETE FROM {TABLE} WHERE {self.some_rows()}")

    def change_by_key(self):
        """Change rows that an index scan finds."""
        where = self.maker.where() or f" WHERE {self.some_rows()}"
        limited = (f"ctid = ANY (ARRAY(SELECT ctid FROM {TABLE}{where}"
                   f" LIMIT {self.rng.choice((1, 5, 40))}))")
        if self.rng.random() < 0.4:
            self.run(f"DELETE FROM {TABLE} WHERE {limited}")
        else:
            self.run(f"UPDATE {TABLE} SET sel = (sel + 1) % 10,"
                     f" note = note || '+' WHERE {limited}")

    def inner_blocks(self):
        """Dozens of subtransactions, every other one rolled back."""
        rows = [self.layout.row_sql() for _ in range(6)]
        inserts = "".join(
            f"BEGIN INSERT INTO {TABLE} VALUES {row}; "
            + ("RAISE division_by_zero; " if self.rng.random() < 0.5 else "")
            + "EXCEPTION WHEN division_by_zero OR unique_violation "
            "THEN NULL; END; "
            for row in rows)
        self.run(f"DO $oracle$ BEGIN {inserts}END $oracle$")

    def some_rows(self):
        """A condition on the rows' numbers."""
        rng = self.rng
        top = self.layout.next_id
        kind = rng.random()
        if kind < 0.4:
            low = rng.randint(0, top)
            return f"id BETWEEN {low} AND {low + rng.choice((0, 1, 5, 40))}"
        if kind < 0.8:
            modulus = rng.choice((3, 7, 20, 50))
            return f"id % {modulus} = {rng.randrange(modulus)}"
        if kind < 0.97:
            return f"sel = {rng.randint(0, 9)} AND id % 4 = {rng.randrange(4)}"
        return f"id > {top // 2}"

    # -- transactions -------------------------------------------------------

    def block(self, inside=None, prepared=None):
        """A transaction with savepoints, then commit, abort or prepare.

        `inside` is called between the changes. It may change pg_index, whose
        rows a prepared transaction would keep locked. `prepared` is called
        while the transaction is prepared.
        """
        rng = self.rng
        if not self.run(rng.choice(("BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL "
                                    "REPEATABLE READ"))):
            return
        good = True
        for _ in range(rng.randint(1, 5)):
            if rng.random() < 0.4:
                good = self.savepoint() and good
            else:
                self.change(small=True)
            if inside and rng.random() < 0.5:
                inside()
        ending = rng.random()
        if (not inside and ending < 0.2
                and not self.layout.persistence.startswith("TEMP")):
            if self.run("PREPARE TRANSACTION 'oracle'"):
                if prepared and rng.random() < 0.5:
                    prepared()
                self.run(rng.choice(("COMMIT PREPARED 'oracle'",
                                     "ROLLBACK PREPARED 'oracle'")))
        elif ending < 0.4:
            self.run("ROLLBACK")
        else:
            self.run("COMMIT")

    def savepoint(self, depth=0):
        rng = self.rng
        if not self.run(f"SAVEPOINT s{depth}"):
            return False
        for _ in range(rng.randint(1, 3)):
            if depth < 2 and rng.random() < 0.3:
                self.savepoint(depth + 1)
            else:
                self.change(small=True)
        if rng.random() < 0.6:
            return self.run(f"ROLLBACK TO s{depth}")
        return self.run(f"RELEASE s{depth}")

    # -- maintenance --------------------------------------------------------

    def maintain(self):
        rng = self.rng
        choices = ((self.vacuum, 50), (self.analyze, 6), (self.reindex, 5),
                   (self.compact, 8), (self.recreate, 4), (self.truncate, 2), (self.cluster, 2),
                   (self.rewrite, 2), (self.delete_most, 5),
                   (self.checkpoint, 2), (self.persistence, 1))
        rng.choices([c for c, _ in choices], [w for _, w in choices])[0]()

    def vacuum(self):
        options = self.rng.choice((
            "", "INDEX_CLEANUP ON", "INDEX_CLEANUP ON", "FREEZE",
            "ANALYZE", "INDEX_CLEANUP ON, FREEZE", "INDEX_CLEANUP OFF"))
        self.run(f"VACUUM {'(' + options + ') ' if options else ''}{TABLE}")

    def analyze(self):
        self.run(f"ANALYZE {TABLE}")

    def reindex(self):
        name = self.rng.choice((f"INDEX {{}}{LSM}", f"INDEX {{}}{LSM}",
                                f"TABLE {{}}{TABLE}"))
        how = self.rng.choice(("", "CONCURRENTLY "))
        self.run("REINDEX " + name.format(how))

    def compact(self):
        if self.layout.am == "lsm":
            self.run(f"SELECT lsm_compact('{LSM}')")

    def recreate(self):
        concurrently = self.rng.random() < 0.5
        if self.run(f"DROP INDEX {'CONCURRENTLY ' if concurrently else ''}"
                    f"{LSM}"):
            self.run(self.layout.create_index(LSM, concurrently))

    def truncate(self):
        if self.rng.random() < 0.5:
            self.run(f"TRUNCATE {TABLE}")
        else:
            self.run("BEGIN")
            self.change(small=True)
            self.run(f"TRUNCATE {TABLE}")
            self.change(small=True)
            self.run(self.rng.choice(("ROLLBACK", "COMMIT")))

    def cluster(self):
        if not self.layout.predicate:
            self.run(f"CLUSTER {TABLE} USING "
                     f"{self.rng.choice((LSM, LSM, BTREE))}")

    def rewrite(self):
        self.run(self.rng.choice((
            f"VACUUM FULL {TABLE}",
            f"ALTER TABLE {TABLE} ALTER COLUMN id TYPE int4 USING id + 0")))

    def delete_most(self):
        """Leave empty runs and pages after VACUUM."""
        rng = self.rng
        self.run(rng.choice((
            f"DELETE FROM {TABLE}",
            f"DELETE FROM {TABLE} WHERE id % 10 <> 0",
            f"DELETE FROM {TABLE} WHERE id < {self.layout.next_id * 2 // 3}",
            f"DELETE FROM {TABLE} WHERE {self.layout.keys[0].sql()} < "
            f"{self.layout.keys[0].literal(rng)}")))
        self.vacuum()

    def checkpoint(self):
        self.run("CHECKPOINT")

    def persistence(self):
        if not self.layout.persistence.startswith("TEMP"):
            self.run(f"ALTER TABLE {TABLE} SET "
                     f"{self.rng.choice(('LOGGED', 'UNLOGGED'))}")
