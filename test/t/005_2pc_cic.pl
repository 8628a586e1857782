# CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY under write load, partly from prepared transactions. Prepared
# transactions across restarts and crashes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('cic', conf => "fsync = off\nlock_timeout = '180s'\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C", who int);
CREATE INDEX t_k ON t USING lsm (k);
INSERT INTO t SELECT i % 100, 's' || i % 10, -1 FROM generate_series(1, 500) i;
});

# CONCURRENTLY waits for transactions. So the builder runs in its own loop, and the writers use short
# transactions.
my $insert = "\\set k random(0, 100)\nBEGIN;\nINSERT INTO t SELECT (:k * i) % 100, 's' || i % 10, :client_id FROM generate_series(1, 20) i;\nUPDATE t SET k = k + 1 WHERE k = :k AND who = :client_id;\nCOMMIT;\n";
my $abort = "\\set k random(0, 100)\nBEGIN;\nINSERT INTO t SELECT (:k * i) % 100, 's' || i % 10, :client_id FROM generate_series(1, 20) i;\nROLLBACK;\n";
my $delete = "\\set k random(0, 100)\nDELETE FROM t WHERE k = :k AND who = :client_id;\n";
my $prepare = q{
\set k random(0, 100)
\set id random(1, 1000000000)
BEGIN;
INSERT INTO t SELECT (:k * i) % 100, 'p' || i % 10, :client_id FROM generate_series(1, 20) i;
PREPARE TRANSACTION 'p:client_id_:id';
COMMIT PREPARED 'p:client_id_:id';
};
my $prepare_abort = $prepare =~ s/COMMIT PREPARED/ROLLBACK PREPARED/r;
my $load = load_start($node, name => 'cic', clients => 3, seconds => 8,
	scripts => [ [ 5, $insert ], [ 1, $abort ], [ 2, $delete ], [ 2, $prepare ], [ 1, $prepare_abort ] ]);
my $rounds = 0;
my $end = time + 6;
while (time < $end)
{
	$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY t_sk ON t USING lsm (s, k DESC) INCLUDE (who)');
	$node->safe_psql('postgres', "SELECT lsm_check('t_sk', true)");
	$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY t_part ON t USING lsm ((k * 2), who) WHERE k > 30');
	$node->safe_psql('postgres', "SELECT lsm_check('t_part', true)");
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_k');
	$node->safe_psql('postgres', "SELECT lsm_check('t_k', true)");
	$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY t');
	$node->safe_psql('postgres', "SELECT lsm_check('t_k', true), lsm_check('t_sk', true), lsm_check('t_part', true)");
	$node->safe_psql('postgres', 'VACUUM t');
	$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY t_sk');
	$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY t_part');
	$rounds++;
}
my $out = load_stop($load);
unlike($out, qr/aborted|ERROR/, 'writers have no errors during concurrent builds');
cmp_ok($rounds, '>', 0, 'indexes were built while writers were active');
note("$rounds rounds");
check_clean($node, 'indexes built concurrently are sound');

# Prepared transactions that outlive a restart and a crash, with merges and
# VACUUM in between.
$node->safe_psql('postgres', q{
	TRUNCATE t;
	CREATE INDEX t_sk ON t USING lsm (s, k DESC) INCLUDE (who);
	INSERT INTO t SELECT i % 100, 'old', 0 FROM generate_series(1, 300) i;
	BEGIN;
	INSERT INTO t SELECT i % 100, 'one', 1 FROM generate_series(1, 100) i;
	DELETE FROM t WHERE k < 10 AND s = 'old';
	PREPARE TRANSACTION 'one';
	BEGIN;
	INSERT INTO t SELECT i % 100, 'two', 2 FROM generate_series(1, 100) i;
	SAVEPOINT a;
	INSERT INTO t SELECT i % 100, 'two, undone', 2 FROM generate_series(1, 100) i;
	ROLLBACK TO a;
	PREPARE TRANSACTION 'two';
	INSERT INTO t SELECT i % 100, 'three', 3 FROM generate_series(1, 300) i;
});
$node->safe_psql('postgres', 'VACUUM t');
$node->restart;
check_clean($node, 'indexes with prepared transactions are sound after a restart');
$node->safe_psql('postgres', q{INSERT INTO t SELECT i % 100, 'four', 4 FROM generate_series(1, 300) i});
$node->safe_psql('postgres', 'VACUUM t');
$node->stop('immediate');
$node->start;
check_clean($node, 'indexes with prepared transactions are sound after a crash');
$node->safe_psql('postgres', q{COMMIT PREPARED 'one'});
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'two'});
$node->safe_psql('postgres', 'VACUUM t');
check_clean($node, 'indexes are sound after the prepared transactions end');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT s, count(*) FROM t WHERE s >= \'a\' GROUP BY s ORDER BY s'),
	"four|300\nold|270\none|100\nthree|300", 'the rows of each transaction');

# REINDEX CONCURRENTLY waits for a prepared transaction and sees its rows.
$node->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO t SELECT i % 100, 'five', 5 FROM generate_series(1, 100) i;
	PREPARE TRANSACTION 'five';
});
my $reindex = $node->background_psql('postgres');
$reindex->query_until(qr/started/, "\\echo started\nREINDEX INDEX CONCURRENTLY t_sk;\n");
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ 'REINDEX INDEX CONC' AND wait_event_type = 'Lock'})
  or die 'REINDEX did not wait';
$node->safe_psql('postgres', q{INSERT INTO t SELECT i % 100, 'six', 6 FROM generate_series(1, 100) i});
$node->safe_psql('postgres', q{COMMIT PREPARED 'five'});
ok($reindex->quit, 'REINDEX CONCURRENTLY succeeds');
check_clean($node, 'an index rebuilt while a transaction was prepared is sound');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM t WHERE s IN ('five', 'six')}), 200, 'the rebuilt index has the rows of both prepared transactions');

# An index whose build failed is invalid, contains all new rows, and can be rebuilt.
$node->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (1, 'seven', 7); PREPARE TRANSACTION 'seven'});
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{SET lock_timeout = '1s'; CREATE INDEX CONCURRENTLY t_late ON t USING lsm (who)});
isnt($ret, 0, 'CREATE INDEX CONCURRENTLY gives up');
$node->safe_psql('postgres', q{COMMIT PREPARED 'seven'});
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_late');
check_clean($node, 'REINDEX makes an invalid index sound');
$node->stop;
done_testing();
