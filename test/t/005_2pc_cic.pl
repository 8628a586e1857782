# Indexes built and rebuilt while clients write, and prepared transactions over a
# restart and over a kill.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('node', conf => "fsync = off\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, n numeric, who int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i % 500, i, -1 FROM generate_series(1, 2000) i;
CREATE INDEX t_k ON t USING lsm (k);
CREATE SEQUENCE gid;
});

my $write = q{
\set k random(1, 1000)
INSERT INTO t SELECT :k, :k / 3.0, :client_id FROM generate_series(1, 3);
};
my $change = q{
\set k random(1, 1000)
BEGIN;
UPDATE t SET k = k + 1 WHERE ctid = (SELECT ctid FROM t WHERE k >= :k ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED);
SAVEPOINT s;
DELETE FROM t WHERE ctid = (SELECT ctid FROM t WHERE k >= :k ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED);
ROLLBACK TO s;
END;
};
my $prepare = q{
\set k random(1, 1000)
SELECT 'p' || nextval('gid') AS gid \gset
BEGIN;
INSERT INTO t VALUES (:k, :k, :client_id);
PREPARE TRANSACTION ':gid';
COMMIT PREPARED ':gid';
};

foreach my $round (1 .. 2)
{
	my $load = load_start($node, clients => 4, seconds => 8,
		scripts => [ [ 4, $write ], [ 3, $change ], [ 1, $prepare ] ]);
	foreach my $i (1 .. 2)
	{
		$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY t_n ON t USING lsm (n, k DESC)');
		$node->safe_psql('postgres', q{SELECT lsm_check('t_n', true)});
		$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_k');
		$node->safe_psql('postgres', 'VACUUM t');
		$node->safe_psql('postgres', q{SELECT lsm_check('t_k', true)});
		$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY t_n') if $i == 1;
	}
	my $output = load_stop($load);
	unlike($output, qr/ERROR|aborted/, "round $round: no client failed") or diag($output);
	check_clean($node, "round $round: indexes built and rebuilt under load are whole");
	$node->safe_psql('postgres', 'DROP INDEX t_n');
}

# Prepared transactions outlive a restart and a kill.
my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
$node->safe_psql('postgres', q{
BEGIN; INSERT INTO t SELECT 5000, i, -2 FROM generate_series(1, 100) i; PREPARE TRANSACTION 'one';
BEGIN; INSERT INTO t SELECT 6000, i, -2 FROM generate_series(1, 100) i; SAVEPOINT s;
INSERT INTO t SELECT 6000, i, -3 FROM generate_series(1, 50) i; ROLLBACK TO s; PREPARE TRANSACTION 'two';
BEGIN; INSERT INTO t SELECT 7000, i, -2 FROM generate_series(1, 100) i; PREPARE TRANSACTION 'three';
});
$node->restart;
$node->safe_psql('postgres', q{COMMIT PREPARED 'one'});
kill_postmaster($node);
$node->start;
$node->safe_psql('postgres', q{COMMIT PREPARED 'two'; ROLLBACK PREPARED 'three'});
my $count = q{SET enable_seqscan = off; SELECT count(*) FROM t WHERE k = };
is($node->safe_psql('postgres', $count . 5000), 100, 'committed after a restart');
is($node->safe_psql('postgres', $count . 6000), 100, 'committed after a kill');
is($node->safe_psql('postgres', $count . 7000), 0, 'rolled back');
$node->safe_psql('postgres', 'VACUUM t');
check_clean($node, 'whole after it all');
$node->stop;
done_testing();
