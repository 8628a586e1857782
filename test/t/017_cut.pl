# VACUUM truncates the free end of an index file under a lock that standbys see. Standbys normally release this lock
# once the file is truncated, even if VACUUM continues with other indexes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = start_new_node('primary', conf => "max_standby_streaming_delay = -1\n");
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

# Makes a free end of the file. A session that has the index open keeps VACUUM from truncating the file.
sub make_free_end
{
	$primary->safe_psql('postgres', q{
		INSERT INTO c SELECT i, repeat('f', 500) FROM generate_series(101, 2000) i;
		DELETE FROM c WHERE k > 100;
	});
	my $reader = $primary->background_psql('postgres');
	$reader->query_safe('BEGIN; SET enable_seqscan = off; SELECT k FROM c WHERE k = 1');
	$primary->safe_psql('postgres', "VACUUM c");
	$primary->safe_psql('postgres', "SELECT lsm_compact('c_k')");
	$reader->query_safe('COMMIT');
	$reader->quit;
	return size_of($primary);
}

sub size_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres', "SELECT pg_relation_size('c_k')");
}

# The index that is cleaned up second calls a function that waits until the test lets it continue.
$primary->safe_psql('postgres', q{
	CREATE TABLE c (k int, f text) WITH (autovacuum_enabled = off);
	CREATE INDEX c_k ON c USING lsm (k);
	INSERT INTO c SELECT i, repeat('f', 500) FROM generate_series(1, 100) i;
	CREATE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(1);
		PERFORM pg_advisory_unlock_shared(1);
		RETURN k;
	END $$;
	CREATE INDEX c_slow ON c USING brin (slow(k)) WITH (pages_per_range = 1);
});

# Begins a VACUUM that truncates the file and waits at the other index.
my ($blocker, $vacuum);

sub begin_vacuum
{
	$primary->safe_psql('postgres', "SELECT brin_desummarize_range('c_slow', 0)");
	$blocker = $primary->background_psql('postgres');
	$blocker->query_safe('SELECT pg_advisory_lock(1)');
	$vacuum = $primary->background_psql('postgres');
	$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM c;\n");
	return $primary->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND wait_event = 'advisory'");
}

sub end_vacuum
{
	$blocker->query_safe('SELECT pg_advisory_unlock(1)');
	$blocker->quit;
	$vacuum->query_safe('SELECT 1');
	$vacuum->quit;
	return;
}

# If the running transactions are logged while the lock is held, the standby keeps the lock. This does not happen
# every time, so try again.
my ($size, $locks);
foreach my $try (1 .. 4)
{
	$size = make_free_end();
	ok(begin_vacuum(), 'VACUUM is at the other index');
	catch_up($primary, $standby);
	$locks = $standby->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'");
	last if $locks == 0 || $try == 4;
	end_vacuum();
}
is($locks, '0', 'the standby has released the lock');
cmp_ok(size_of($primary), '<', $size, 'VACUUM has truncated the file');
is($primary->safe_psql('postgres', "SELECT phase, heap_blks_total > 0 FROM pg_stat_progress_vacuum WHERE relid = 'c'::regclass"),
	'cleaning up indexes|t', 'VACUUM still reports its progress');
is($standby->safe_psql('postgres', "SET statement_timeout = '20s'; SET enable_seqscan = off; SELECT count(*) FROM c WHERE k > 0"),
	'100', 'queries on the standby do not wait');
cmp_ok(size_of($standby), '<', $size, 'the standby has truncated the file, too');
end_vacuum();

# An error in the truncation ends the command and leaves the session as before.
$size = make_free_end();
my $session = $primary->background_psql('postgres', on_error_stop => 0);
$session->query("SET pg_lsm.debug_stop_at = 'truncate-cut:error'");
$session->query('VACUUM c');
like($session->{stderr}, qr/stopped at "truncate-cut"/, 'an error in truncation ends VACUUM');
$session->{stderr} = '';
is($session->query_safe("SELECT count(*) FROM pg_locks WHERE relation >= 16384"), '0', 'after the error, the session works and holds no lock');
is(size_of($primary), $size, 'after the error, the file is not truncated');
$session->query_safe('RESET pg_lsm.debug_stop_at');
$session->query_safe('VACUUM c');
cmp_ok(size_of($primary), '<', $size, 'the next VACUUM truncates the file');
$session->quit;

# A parallel VACUUM cannot truncate the file. A worker does so after VACUUM has ended, once the index is idle.
$size = make_free_end();
$primary->safe_psql('postgres', 'CREATE INDEX c_f ON c USING lsm (f)');
my ($out, $err);
change_settings($primary, 'pg_lsm.max_workers' => 2, 'pg_lsm.idle_delay' => '100ms');
$primary->psql('postgres', 'SET min_parallel_index_scan_size = 0; DELETE FROM c WHERE k > 90; VACUUM (PARALLEL 2, INDEX_CLEANUP ON, VERBOSE) c',
	stdout => \$out, stderr => \$err);
like($err, qr/launched 1 parallel vacuum worker for index vacuuming/, 'a parallel VACUUM vacuums two lsm indexes at once');
ok($primary->poll_query_until('postgres', "SELECT pg_relation_size('c_k') < $size"), 'a worker truncates the file after a parallel VACUUM');
catch_up($primary, $standby);
cmp_ok(size_of($standby), '<', $size, "the standby replays the worker's truncation");
check_clean($primary, 'indexes on the primary are sound afterwards');
check_clean($standby, 'indexes on the standby are sound afterwards', no_check => 1);

$standby->stop;
$primary->stop;
done_testing();
