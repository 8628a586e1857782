# pg_dump and pg_restore recreate indexes; pg_upgrade takes over their files.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('old', conf => "fsync = off\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C", n numeric, d timestamptz, id serial PRIMARY KEY);
INSERT INTO t (k, s, n, d) SELECT i % 100, 's' || i % 10, i / 7.0, now() + i * interval '1 minute' FROM generate_series(1, 800) i;
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_mixed ON t USING lsm (s DESC, n NULLS FIRST, k DESC NULLS LAST) INCLUDE (id);
CREATE INDEX t_part ON t USING lsm (d) WHERE k > 50;
CREATE INDEX t_expr ON t USING lsm (lower(s), (n * 2));
CREATE INDEX t_pattern ON t USING lsm (s text_pattern_ops);
INSERT INTO t (k, s, n, d) SELECT i % 100, 't' || i % 10, i / 3.0, now() FROM generate_series(1, 800) i;
ALTER TABLE t CLUSTER ON t_k;
ALTER INDEX t_expr ALTER COLUMN 2 SET STATISTICS 50;
COMMENT ON INDEX t_k IS 'a comment';
CREATE TABLE e (k int, CONSTRAINT e_k EXCLUDE USING lsm (k WITH =) DEFERRABLE);
INSERT INTO e SELECT i FROM generate_series(1, 100) i;
CREATE TABLE p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (50);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (50) TO (100);
CREATE INDEX p_k ON p USING lsm (k, v COLLATE "C");
INSERT INTO p SELECT i % 100, 'p' || i FROM generate_series(1, 500) i;
CREATE TABLE c (id int PRIMARY KEY WITH (lsm), a int UNIQUE NULLS NOT DISTINCT WITH (lsm, merge_fanout = 4), CONSTRAINT c_x UNIQUE (a, id) INCLUDE (a) WITH (lsm) DEFERRABLE);
CREATE UNIQUE INDEX c_u ON c USING lsm ((a + 1)) WHERE id > 5;
INSERT INTO c SELECT i, i FROM generate_series(1, 100) i;
CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM t GROUP BY k;
CREATE INDEX m_n ON m USING lsm (n, k);
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING lsm (k);
INSERT INTO u SELECT i FROM generate_series(1, 100) i;
-- An operator class of the user's own.
CREATE FUNCTION back_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS back_ops FOR TYPE int USING lsm AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 back_cmp(int, int);
CREATE INDEX t_back ON t USING lsm (k back_ops);
DELETE FROM t WHERE k % 7 = 0;
});
$node->safe_psql('postgres', 'VACUUM t');
check_clean($node, 'before the dump');

my $definitions = "SELECT indexdef FROM pg_indexes WHERE indexdef ~ 'USING lsm' UNION ALL SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype IN ('p', 'u') ORDER BY 1";
my $want = $node->safe_psql('postgres', $definitions);
my $rows = 'SELECT count(*), sum(k), sum(n) FROM t';
my $want_rows = $node->safe_psql('postgres', $rows);

# A plain dump, and an archive that is restored in parallel.
my $plain = $node->basedir . '/plain.sql';
my $archive = $node->basedir . '/archive';
$node->command_ok([ 'pg_dump', '-f', $plain, $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'pg_dump', '-Fd', '-j2', '-f', $archive, $node->connstr('postgres') ], 'pg_dump into an archive');
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0") foreach qw(plain parallel);
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('plain') ], 'restore of the plain dump');
$node->command_ok([ 'pg_restore', '-j2', '-e', '-d', $node->connstr('parallel'), $archive ], 'parallel restore');
foreach my $db (qw(plain parallel))
{
	is($node->safe_psql($db, $definitions), $want, "$db: same definitions");
	is($node->safe_psql($db, $rows), $want_rows, "$db: same rows");
	check_clean($node, "$db: indexes", db => $db);
	is($node->safe_psql($db, q{SELECT count(*) FROM pg_index WHERE indisclustered}), 1, "$db: clustered");
}
# The operator classes are in the schema of a B-tree's classes, so the extension may be in another schema.
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere TEMPLATE template0');
$node->safe_psql('elsewhere', 'CREATE SCHEMA own; CREATE EXTENSION pg_lsm SCHEMA own');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('elsewhere') ], 'restore where the extension is in another schema');
is($node->safe_psql('elsewhere', $definitions), $want, 'same definitions');
is($node->safe_psql('elsewhere', q{SET search_path = ''; CREATE INDEX ON public.t USING lsm (s varchar_pattern_ops); SELECT 1}), 1, 'classes need no search_path');
$node->safe_psql('elsewhere', 'DROP TABLE t, e, p, c, u CASCADE; DROP OPERATOR CLASS back_ops USING lsm CASCADE; DROP EXTENSION pg_lsm');
is($node->safe_psql('elsewhere', q{SELECT count(*) FROM pg_opclass c JOIN pg_opfamily f ON f.oid = opcfamily WHERE opcmethod NOT IN (SELECT oid FROM pg_am) OR opfmethod NOT IN (SELECT oid FROM pg_am)}), 0,
	'DROP EXTENSION drops them');
# A copy of a database copies the index files unchanged.
$node->safe_psql('postgres', 'CREATE DATABASE wal_copy TEMPLATE plain STRATEGY wal_log');
$node->safe_psql('postgres', 'CREATE DATABASE file_copy TEMPLATE plain STRATEGY file_copy');
foreach my $db (qw(wal_copy file_copy))
{
	check_clean($node, "$db: indexes", db => $db);
	$node->safe_psql($db, q{INSERT INTO t (k, s) SELECT i % 100, 'copy' FROM generate_series(1, 300) i});
	check_clean($node, "$db: indexes after writes", db => $db);
}
$node->safe_psql('postgres', 'DROP DATABASE file_copy');
# The copy through WAL survives a crash.
$node->stop('immediate');
$node->start;
check_clean($node, 'wal_copy: indexes after a crash', db => 'wal_copy');
$node->safe_psql('postgres', 'DROP DATABASE wal_copy');
$node->safe_psql('postgres', 'DROP DATABASE parallel');

# pg_upgrade takes over the index files, whatever the new version is. An upgrade from a version to itself can be tested
# everywhere.
$node->stop;
my $bindir = $node->config_data('--bindir');
my $sockets = PostgreSQL::Test::Utils::tempdir_short();
my $upgrade = sub {
	my ($to) = @_;

	chdir $to->basedir or die $!;
	return 'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $to->data_dir, '-b', $bindir, '-B', $bindir,
	  '-s', $sockets, '-p', $node->port, '-P', $to->port;
};
# A server that does not preload the library cannot take over the files.
my $bare = new_node('bare', conf => "fsync = off\nshared_preload_libraries = ''\n");
$node->command_checks_all([ $upgrade->($bare) ], 1, [qr/Restoring database schemas/], [], 'pg_upgrade to a server without the library stops');
my $new = new_node('new', conf => "fsync = off\n");
$node->command_ok([ $upgrade->($new) ], 'pg_upgrade');
$new->start;
foreach my $db (qw(postgres plain))
{
	is($new->safe_psql($db, $definitions), $want, "upgraded, $db: same definitions");
	check_clean($new, "upgraded, $db: indexes", db => $db);
	$new->safe_psql($db, q{INSERT INTO t (k, s) SELECT i % 100, 'upgraded' FROM generate_series(1, 300) i; DELETE FROM t WHERE k < 20});
	$new->safe_psql($db, 'VACUUM t');
	check_clean($new, "upgraded, $db: indexes after writes", db => $db);
}
$new->stop;
done_testing();
