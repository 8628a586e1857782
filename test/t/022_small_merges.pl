# Who does small merges: a worker if one is running, the writer if the worker is late. No worker is started for small
# merges. lsm_compact keeps no worker from merges that become due later.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# No merge starts because the index is idle. The limits are the defaults.
my $node = start_new_node('small', conf => "
pg_lsm.max_workers = 1
pg_lsm.idle_delay = -1
pg_lsm.debug_foreground_blocks = 128
pg_lsm.debug_buffer_entries = 0
pg_lsm.debug_page_entries = 0
pg_lsm.debug_merge_fanout = 16
pg_lsm.debug_segment_size = 0
log_min_messages = debug1
");

sub one
{
	my ($query) = @_;

	return $node->safe_psql('postgres', $query);
}

sub workers
{
	return one(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker'});
}

# With this function, merges by workers and by the session named stuck wait for an advisory lock.
one(q{
CREATE FUNCTION wait_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('application_name') IN ('pg_lsm worker', 'stuck') THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	RETURN pg_catalog.btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS wait_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 wait_cmp(int, int);
CREATE TABLE t (k uuid);
CREATE INDEX t_k ON t USING lsm (k);
CREATE TABLE u (k int);
CREATE INDEX u_k ON u USING lsm (k wait_ops);
});

# A batch of these rows is a run of four blocks. A job of 32 such runs has the size that writers merge at once.
my $batch = 'INSERT INTO t SELECT gen_random_uuid() FROM generate_series(1, 1000);';
my $free = q{SELECT count(*) FROM lsm_runs('t_k') WHERE level = 0 AND state <> 'open'};
my $u_large = "SET pg_lsm.debug_foreground_blocks = 0;" . "INSERT INTO u SELECT (random() * 1000)::int FROM generate_series(1, 100);" x 33;

# The largest number of runs on level 0 while batches arrive.
sub most_runs
{
	my ($batches) = @_;
	my $most = 0;

	foreach my $n (split /\n/, one("$batch $free;" x $batches))
	{
		$most = $n if $n > $most;
	}
	return $most;
}

my $most = most_runs(70);
cmp_ok($most, '<', 32, 'without a worker, the writer does small merges at once');
cmp_ok(one(q{SELECT merges FROM pg_stat_lsm_indexes WHERE indexrelname = 't_k'}), '>=', 2, 'the writer has merged');
is(workers(), 0, 'no worker is running for small merges');
unlike(slurp_file($node->logfile), qr/starting background worker process "pg_lsm worker/, 'no worker was started for small merges');

# A worker is running but late: it waits for our lock.
my $holder = $node->background_psql('postgres');
$holder->query_until(qr/locked/, "SELECT pg_advisory_lock(1);\n\\echo locked\n");
one($u_large);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker' AND wait_event_type = 'Lock'}),
	'a worker is running, but late');
$most = most_runs(120);
cmp_ok($most, '>=', 32, 'small merges wait for the late worker');
cmp_ok($most, '<=', 48, 'the writer merges once half as many runs again have arrived');
$holder->query_until(qr/unlocked/, "SELECT pg_advisory_unlock(1);\n\\echo unlocked\n");
# Wait half a minute at most: a worker that has nothing to do exits after a second.
ok($node->poll_query_until('postgres', "SELECT count(*) < 32 FROM lsm_runs('t_k') WHERE level = 0 AND state <> 'open'"), 'the worker does the small merges once it can');
check_clean($node, 'indexes are sound after small merges');

# A request made during lsm_compact does not wait until the launcher's next timed check.
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker'}), 'the worker exits');
$holder->query_until(qr/locked/, "SELECT pg_advisory_lock(1);\n\\echo locked\n");
one("INSERT INTO u SELECT (random() * 1000)::int FROM generate_series(1, 100);" x 2);
# The session must survive the error.
my $stuck = $node->background_psql('postgres', on_error_stop => 0);
$stuck->query_until(qr/started/, "SET application_name = 'stuck';\n\\echo started\nSELECT lsm_compact('u_k');\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'stuck' AND wait_event_type = 'Lock'}),
	'lsm_compact waits in a comparison');
one($u_large);
is(workers(), 0, 'no worker merges the index during lsm_compact');
$holder->query_until(qr/unlocked/, "SELECT pg_advisory_unlock(1);\n\\echo unlocked\n");
my $cancelled = time;
one(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'stuck'});
ok($node->poll_query_until('postgres', "SELECT count(*) < 32 FROM lsm_runs('u_k') WHERE level = 0 AND state <> 'open'"), 'a worker merges the rest after lsm_compact');
cmp_ok(time - $cancelled, '<', 20, 'the worker merges soon after lsm_compact');
$stuck->quit;
$holder->quit;
check_clean($node, 'indexes are sound after all merges');

$node->stop;
done_testing();
