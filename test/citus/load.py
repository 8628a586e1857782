"""Clients that write into tables with lsm indexes and their twins, so that both must have the same rows at any time.

Each transaction changes both tables in the same way. Each client has rows of its own, so that the order in which
clients commit does not matter. A transaction inserts a row into acks; a row that a client was told to be committed must
be there later.
"""

import random
import threading
import time

from pgwire import ConnectionLost, PgError

CLIENTS = 3
ROWS = 60               # of a transaction
KEYS = 1000             # of a client's distribution column

CREATE = """
CREATE TABLE {schema}.moving (
    k int, id int, client int, v int, t text COLLATE "C", PRIMARY KEY (k, id) WITH (lsm = {lsm}));
CREATE INDEX moving_v ON {schema}.moving USING {am} (v, k);
CREATE UNIQUE INDEX moving_t ON {schema}.moving USING {am} (t, k) INCLUDE (v);
CREATE TABLE {schema}.acks (client int, n int, PRIMARY KEY (client, n) WITH (lsm = {lsm}));
SELECT create_distributed_table('{schema}.moving', 'k', shard_count := 8, colocate_with := 'none');
SELECT create_distributed_table('{schema}.acks', 'n', shard_count := 4, colocate_with := 'none')
"""


class Load:
    TABLES = ("moving", "acks")

    def __init__(self, coordinator, seed):
        self.coordinator = coordinator
        self.acknowledged = [[] for _ in range(CLIENTS)]
        self.next = [0] * CLIENTS
        self.random = [random.Random(seed * 100 + client) for client in range(CLIENTS)]
        self.problems = []
        self.threads = []
        self.stopping = False

    def create(self):
        session = self.coordinator.connect()
        for schema, am, lsm in (("l", "lsm", "true"), ("b", "btree", "false")):
            for statement in CREATE.format(schema=schema, am=am, lsm=lsm).split(";\n"):
                session.query(statement)
        session.close()

    def __enter__(self):
        self.stopping = False
        self.threads = [threading.Thread(target=self.write, args=(client,)) for client in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join()

    def commits(self):
        return sum(len(numbers) for numbers in self.acknowledged)

    def wait_for_commits(self, count, seconds=60):
        """Waits until the clients have committed some more transactions."""
        goal = self.commits() + count
        deadline = time.monotonic() + seconds
        while self.commits() < goal:
            if time.monotonic() > deadline:
                raise TimeoutError("the clients commit nothing")
            time.sleep(0.05)

    def write(self, client):
        session = None
        while not self.stopping:
            try:
                if session is None:
                    session = self.coordinator.connect()
                self.transaction(session, client)
            except ConnectionLost:
                session = None
                time.sleep(0.2)
            except PgError as error:
                # Moves and crashes cause errors, but clients never insert a key twice.
                if error.sqlstate == "23505":
                    self.problems.append(str(error))
                try:
                    session.query("ROLLBACK")
                except (PgError, ConnectionLost):
                    session = None
                time.sleep(0.1)
        if session:
            session.close()

    def transaction(self, session, client):
        choose = self.random[client]
        number = self.next[client]
        self.next[client] += 1
        rows = ", ".join("(%d, %d, %d, %d, '%d %d')" % (
            choose.randrange(KEYS), n + client * 10000000, client, choose.randrange(100), client, n)
            for n in range(number * ROWS, (number + 1) * ROWS))
        low = choose.randrange(100)
        changes = ["INSERT INTO {0}.moving VALUES %s" % rows,
                   "UPDATE {0}.moving SET v = v + 100 WHERE client = %d AND v = %d" % (client, low),
                   "DELETE FROM {0}.moving WHERE client = %d AND v = %d" % (client, 100 + choose.randrange(100)),
                   "INSERT INTO {0}.moving SELECT k, id + 5000000, client, v, t || '+' FROM {0}.moving"
                   " WHERE client = %d AND id %% %d = %d AND id %% 10000000 < 5000000 ON CONFLICT DO NOTHING"
                   % (client, ROWS * 7, number % ROWS)]
        wanted = [changes[0], changes[1 + number % 3]]
        session.query("BEGIN")
        for schema in ("l", "b"):
            for change in wanted:
                session.query(change.format(schema))
            session.query("INSERT INTO %s.acks VALUES (%d, %d)" % (schema, client, number))
        session.query("COMMIT")
        self.acknowledged[client].append(number)

    def lost(self, session):
        """Transactions that clients were told to be committed, but are not there."""
        found = {(int(client), int(n)) for client, n in session.query("SELECT client, n FROM l.acks").rows}
        return ["transaction %d of client %d is lost" % (n, client)
                for client, numbers in enumerate(self.acknowledged) for n in numbers if (client, n) not in found]
