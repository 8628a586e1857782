# The counters of pg_stat_lsm_indexes over the life of an index and of the server. Since PostgreSQL 18, the cumulative
# statistics system keeps the counters. Before 18, the counters are in shared memory only.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('primary');
my $cumulative = $node->pg_version->major >= 18;

sub sql
{
	return $node->safe_psql('postgres', @_);
}

sub counts
{
	return sql(q{SELECT entries_inserted, seeks, stats_reset IS NOT NULL, last_compaction IS NOT NULL
		FROM pg_stat_lsm_indexes WHERE indexrelname = 't_k'});
}

# Does the server keep statistics of this index?
sub has_stats
{
	my ($where, $index) = @_;

	return $where->safe_psql('postgres', qq{SELECT pg_stat_have_stats('pg_lsm', oid, $index) FROM pg_database WHERE datname = 'postgres'});
}

# 1. Each session adds its counts, at the latest when it ends.
sql('CREATE TABLE t (k int); CREATE INDEX t_k ON t USING lsm (k)');
sql('INSERT INTO t SELECT generate_series(1, 2000)');
sql('INSERT INTO t SELECT generate_series(1, 2000)');
sql('SET enable_seqscan = off; SELECT count(*) FROM t WHERE k = 7') for (1 .. 3);
sql(q{SELECT lsm_compact('t_k')});
like(counts(), qr/^4000\|[3-9]\|[tf]\|t$/, 'the counters include all sessions');
is(sql(q{SET enable_seqscan = off; SELECT lsm_stat_reset(); SELECT count(*) FROM t WHERE k = 7;
	SELECT entries_inserted, seeks, stats_reset IS NOT NULL, last_compaction IS NULL FROM pg_stat_lsm_indexes}), "\n2\n0|1|t|t",
	'lsm_stat_reset() keeps what the same session reads afterwards');

# 2. A restart, and a crash.
sql('INSERT INTO t SELECT generate_series(1, 500)');
$node->restart;
like(counts(), $cumulative ? qr/^500\|1\|t\|[tf]$/ : qr/^0\|0\|f\|f$/, $cumulative ? 'a restart keeps the counts' : 'a restart loses the counts');
sql('INSERT INTO t SELECT generate_series(1, 700)');
like(counts(), $cumulative ? qr/^1200\|/ : qr/^700\|/, 'the server continues to count after a restart');
$node->stop('immediate');
$node->start;
like(counts(), qr/^0\|0\|/, 'after a crash, the counters start from zero');

# What is left of a dropped index: its statistics, and its slot. Before 18, the slot has the statistics.
sub remains
{
	my ($index) = @_;

	return sql("SELECT entries_inserted, seeks, runs IS NULL FROM lsm_stat_index($index)") . ($cumulative ? has_stats($node, $index) : 'f');
}

# 3. DROP INDEX CONCURRENTLY. Its first transaction invalidates the index. Then it waits for a session that uses the
# table. Meanwhile others write to the index.
my $user = $node->background_psql('postgres');
sub drop_concurrently
{
	my ($do) = @_;
	my $dropping = $node->background_psql('postgres', on_error_stop => 0);

	$user->query_safe('BEGIN; LOCK TABLE d IN ACCESS SHARE MODE');
	$dropping->query_until(qr/start/, "\\echo start\nDROP INDEX CONCURRENTLY d_k;\n");
	$node->poll_query_until('postgres', q{SELECT NOT indisvalid FROM pg_index WHERE indexrelid = 'd_k'::regclass})
	  or die 'timed out';
	sql('INSERT INTO d SELECT generate_series(1, 100)');
	$do->();
	$user->query_safe('COMMIT');
	$dropping->quit;
	return;
}
sql('CREATE TABLE d (k int); CREATE INDEX d_k ON d USING lsm (k)');
sql('INSERT INTO d SELECT generate_series(1, 100)');
my $dropped = sql(q{SELECT 'd_k'::regclass::oid});
drop_concurrently(
	sub {
		my $dropping = q{FROM pg_stat_activity WHERE query LIKE 'DROP INDEX CONC%'};

		sql("SELECT pg_cancel_backend(pid) $dropping");
		$node->poll_query_until('postgres', "SELECT state = 'idle' $dropping") or die 'timed out';
	});
is(sql(q{SELECT entries_inserted FROM lsm_stat_index('d_k'::regclass)}), '200', 'DROP INDEX CONCURRENTLY that fails keeps the counts');
sql('DROP INDEX d_k');
is(remains($dropped), '0|0|tf', 'DROP INDEX removes the statistics and the slot');
sql('CREATE INDEX d_k ON d USING lsm (k)');
$dropped = sql(q{SELECT 'd_k'::regclass::oid});
drop_concurrently(sub { });
is(remains($dropped), '0|0|tf', 'DROP INDEX CONCURRENTLY removes statistics and slot, although others have used the index meanwhile');

# 4. The rollback of a subtransaction releases its lock. Then another session drops the index that the subtransaction
# has read.
sql('CREATE INDEX d_k ON d USING lsm (k)');
$dropped = sql(q{SELECT 'd_k'::regclass::oid});
$user->query_safe('SET enable_seqscan = off; BEGIN; SAVEPOINT s; SELECT count(*) FROM d WHERE k = 7; ROLLBACK TO s');
sql('DROP INDEX d_k');
$user->query_safe('COMMIT');
$user->quit;
is(remains($dropped), '0|0|tf', 'no counts are left of an index that another session has dropped');

# 5. Counts that the session has not published yet.
sql('CREATE INDEX d_k ON d USING lsm (k)');
my $read = 'SET enable_seqscan = off; BEGIN; SELECT count(*) FROM d WHERE k = 7';
sql("$read; ALTER INDEX d_k RENAME TO d_l; ALTER INDEX d_l RENAME TO d_k; COMMIT");
is(sql(q{SELECT seeks FROM pg_stat_lsm_indexes WHERE indexrelname = 'd_k'}), '1', 'an ALTER of the index loses no counts');
is(sql("$read; SELECT lsm_stat_reset(); SELECT seeks FROM pg_stat_lsm_indexes WHERE indexrelname = 'd_k'; COMMIT") =~ s/.*\n//sr, '0',
	'lsm_stat_reset() discards what this transaction has read');

if ($cumulative)
{
	# 6. PostgreSQL's own reset.
	sql('INSERT INTO t SELECT generate_series(1, 10)');
	like(counts(), qr/^10\|/, 'the counters have counted');
	sql('SELECT pg_stat_reset()');
	like(counts(), qr/^0\|0\|t\|f$/, 'pg_stat_reset() resets our counters');

	# 7. Statistics live as long as their index.
	$node->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->start;
	my $index = sql(q{SELECT 't_k'::regclass::oid});
	sql('INSERT INTO t SELECT generate_series(1, 10)');
	catch_up($node, $standby);
	$standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE k = 7');
	is(has_stats($node, $index) . has_stats($standby, $index), 'tt', 'both primary and standby have statistics');
	sql('BEGIN; DROP TABLE t; ROLLBACK');
	is(has_stats($node, $index), 't', 'a DROP that is rolled back keeps the statistics');
	sql('DROP TABLE t');
	catch_up($node, $standby);
	is(has_stats($node, $index) . has_stats($standby, $index), 'ff', 'DROP removes the statistics, on the standby too');
	sql('CREATE INDEX d_j ON d USING lsm (k)');
	$index = sql(q{SELECT 'd_j'::regclass::oid});
	sql(q{BEGIN; DROP INDEX d_j; PREPARE TRANSACTION 'p'});
	is(has_stats($node, $index), 't', 'a prepared DROP keeps the statistics');
	sql(q{COMMIT PREPARED 'p'});
	is(has_stats($node, $index), 'f', 'COMMIT PREPARED of the DROP removes the statistics');
	my $aborted = sql(q{BEGIN; CREATE TABLE a (k int); CREATE INDEX a_k ON a USING lsm (k); INSERT INTO a SELECT generate_series(1, 3000);
		SELECT lsm_compact('a_k'); SELECT 'a_k'::regclass::oid; ROLLBACK});
	$aborted =~ s/\s//g;
	is(has_stats($node, $aborted), 'f', 'a CREATE INDEX that is rolled back leaves no statistics');
	sql('CREATE INDEX d_j ON d USING lsm (k)');
	$index = sql(q{SELECT 'd_j'::regclass::oid});
	catch_up($node, $standby);
	$standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM d WHERE k = 7');
	is(has_stats($standby, $index), 't', 'the standby has statistics that the primary lacks');
	sql('DROP INDEX d_j');
	catch_up($node, $standby);
	is(has_stats($standby, $index), 'f', 'DROP removes statistics that only the standby has');
	$standby->stop;

	# 8. WAL names each statistics entry once.
	my $start = sql('SELECT pg_current_wal_insert_lsn()');
	$index = (split /\n/, sql(q{BEGIN; CREATE TABLE a (k int); CREATE INDEX a_k ON a USING lsm (k); TRUNCATE a; TRUNCATE a;
		SELECT 'a_k'::regclass::oid; ROLLBACK}))[-1];
	flush_wal($node);
	my ($out) = run_command(['pg_waldump', '-r', 'Transaction', '-s', $start, '-p', $node->data_dir . '/pg_wal']);
	is(() = $out =~ m{\d+/\d+/$index\b}g, 2, 'PostgreSQL and pg_lsm each drop the statistics of the index once');
	is(has_stats($node, $index), 'f', 'the index has no statistics after the DROP');

	# 9. The server discards its statistics file if it starts without the library.
	sql('INSERT INTO d SELECT generate_series(1, 100)');
	my $rows = q{SELECT n_live_tup > 0 FROM pg_stat_user_tables WHERE relname = 'd'};
	is(sql($rows), 't', 'the server has statistics of tables');
	$node->stop;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
	$node->start;
	is(sql($rows), 'f', 'a start without the library discards the statistics of tables');
	$node->stop;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_lsm'");
	$node->start;
}
$node->stop;
done_testing();
