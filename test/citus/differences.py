"""What differs from B-trees: statements, and patterns for their results. docs/citus.md explains the differences.

The statements run in schema d, in this order. An error is shown as "SQLSTATE message (detail)".
"""

# The methods of the indexes of a table and its shards, on all nodes.
METHODS = """SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_all_nodes($$
    SELECT string_agg(DISTINCT a.amname, ' ')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE i.indrelid::regclass::text ~ '^d.%s(_[0-9]+)?$' $$)"""

COUNT = "SELECT count(*) FROM pg_index WHERE indrelid = '%s'::regclass"

PEOPLE = "CREATE TABLE people (id int PRIMARY KEY WITH (lsm = true), email citext UNIQUE WITH (lsm = true))"

DIFFERENCES = [
    # Citus accepts only operator classes that belong to an extension.
    ("CREATE EXTENSION citext SCHEMA public", "CREATE EXTENSION"),
    ("SELECT lsm_create_opclass('citext_ops')", "SELECT 1"),
    (PEOPLE, "CREATE TABLE"),
    ("SELECT create_reference_table('people')",
     '"table people" has dependency on unsupported object "operator class citext_ops for access method lsm"'),
    ("DROP TABLE people", "DROP TABLE"),
    ("CREATE TABLE accounts (id int PRIMARY KEY WITH (lsm = true), email citext)", "CREATE TABLE"),
    ("SELECT create_distributed_table('accounts', 'id')", "SELECT 1"),
    ("CREATE INDEX accounts_email ON accounts USING lsm (email)",
     '"index accounts_email" has dependency on unsupported object "operator class citext_ops for access method lsm"'),
    ("DROP OPERATOR FAMILY public.citext_ops USING lsm CASCADE", "DROP OPERATOR FAMILY"),
    ("CREATE EXTENSION lsm_citext", "CREATE EXTENSION"),
    ("SELECT string_agg(result, ' ') FROM run_command_on_all_nodes($$"
     "SELECT count(*) FROM pg_opclass WHERE opcname = 'citext_ops'$$)",
     "^3 3 3\n"),
    ("CREATE INDEX accounts_email ON accounts USING lsm (email)", "CREATE INDEX"),
    ("INSERT INTO accounts SELECT i, 'Name' || i FROM generate_series(1, 2000) i", "INSERT 0 2000"),
    ("SELECT id, email FROM accounts WHERE email = 'NAME77'", r"77 \| Name77"),
    ("EXPLAIN SELECT id FROM accounts WHERE email = 'NAME77'", r"accounts_email_\d+"),
    (PEOPLE, "CREATE TABLE"),
    ("SELECT create_reference_table('people')", "SELECT 1"),
    ("INSERT INTO people VALUES (1, 'A'), (2, 'a')", "^23505"),

    # lsm_convert does not reach shards, but works before a table is distributed. The statements for a conversion by
    # hand do reach the shards.
    ("CREATE TABLE converted (id int PRIMARY KEY, k int, UNIQUE (id, k))", "CREATE TABLE"),
    ("CREATE INDEX converted_k ON converted (k)", "CREATE INDEX"),
    ("CALL lsm_convert('d.converted_k')", "CALL"),
    ("CALL lsm_convert('d.converted_pkey')", "CALL"),
    ("SELECT create_distributed_table('converted', 'id')", "SELECT 1"),
    (COUNT % "converted", "^3\n"),
    ("CALL lsm_convert('d.converted_id_k_key')", "^55000 cannot convert index .*Citus distributes the table"),
    ("CALL lsm_convert('d.converted_k', 'btree')", "^55000 cannot convert index .*Citus distributes the table"),
    ("ALTER TABLE converted DROP CONSTRAINT converted_id_k_key", "ALTER TABLE"),
    (METHODS % "converted", "^lsm\n"),
    ("CREATE UNIQUE INDEX CONCURRENTLY converted_new ON converted USING lsm (id, k)", "CREATE INDEX"),
    ("ALTER TABLE converted ADD CONSTRAINT converted_key UNIQUE USING INDEX converted_new",
     '^0A000 cannot add a constraint that uses lsm index "converted_new" .Citus distributes the table'),
    ("ALTER TABLE converted ADD CONSTRAINT converted_key UNIQUE (id, k) WITH (lsm = true)", "ALTER TABLE"),
    ("DROP INDEX converted_new", "DROP INDEX"),
    (METHODS % "converted", "^lsm\n"),

    # Each node has its own setting for the default method.
    ("SET pg_lsm.default_method = lsm", "SET"),
    ("CREATE TABLE defaulted (id int PRIMARY KEY, k int)", "CREATE TABLE"),
    ("CREATE INDEX ON defaulted (k)", "CREATE INDEX"),
    ("SELECT create_distributed_table('defaulted', 'id')", "SELECT 1"),
    (METHODS % "defaulted", "^lsm\n"),
    ("CREATE INDEX defaulted_later ON defaulted (k)", "CREATE INDEX"),
    (METHODS % "defaulted", "btree"),       # the workers' own definitions say btree; the shards use lsm
    ("DROP INDEX defaulted_later", "DROP INDEX"),
    ("CREATE INDEX defaulted_later ON defaulted USING lsm (k)", "CREATE INDEX"),
    (METHODS % "defaulted", "^lsm\n"),
    ("RESET pg_lsm.default_method", "RESET"),

    # Columnar tables cannot have lsm indexes.
    ("CREATE EXTENSION IF NOT EXISTS citus_columnar", "CREATE EXTENSION"),
    ("SET search_path = d, public", "SET"),         # the script of this extension resets search_path
    ("CREATE TABLE col (id int, k int) USING columnar", "CREATE TABLE"),
    ("CREATE INDEX ON col USING lsm (k)", "^0A000 unsupported access method for the index on columnar table col"),
    ("ALTER TABLE col ADD PRIMARY KEY (id) WITH (lsm = true)",
     '^0A000 access method "lsm" does not support table "col" .Table access method "columnar" does not store'),
    ("CREATE TABLE heap (id int PRIMARY KEY WITH (lsm = true), k int)", "CREATE TABLE"),
    ("CREATE INDEX heap_k ON heap USING lsm (k)", "CREATE INDEX"),
    ("INSERT INTO heap SELECT i, i FROM generate_series(1, 1000) i", "INSERT 0 1000"),
    ("ALTER TABLE heap SET ACCESS METHOD columnar", '^0A000 access method "lsm" does not support table'),
    (COUNT % "heap", "^2\n"),
    ("SELECT create_distributed_table('heap', 'id')", "SELECT 1"),
    ("SELECT alter_table_set_access_method('heap', 'columnar')", "SELECT 1"),
    (COUNT % "heap", "^0\n"),
    ("SELECT alter_table_set_access_method('heap', 'heap')", "SELECT 1"),
    (COUNT % "heap", "^0\n"),
    ("ALTER TABLE heap ADD PRIMARY KEY (id) WITH (lsm = true)", "ALTER TABLE"),
    ("CREATE INDEX heap_k ON heap USING lsm (k)", "CREATE INDEX"),
    ("SELECT k FROM heap WHERE k BETWEEN 500 AND 502 ORDER BY k", "^500\n501\n502\n"),
    (METHODS % "heap", "^lsm\n"),
]
