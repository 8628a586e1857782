# Background workers. They do the large merges, leave when somebody needs the database, survive errors and crashes,
# and run as the table's owner. Nothing breaks without them. Also lsm_compact and the statistics.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = start_new_node('workers', conf => "
pg_lsm.max_workers = 2
pg_lsm.idle_delay = '200ms'
max_worker_processes = 12
");

# A comparison function that a table makes slow or makes fail.
my $opclass = q{
CREATE FUNCTION NAME_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	BODY
	RETURN pg_catalog.btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS NAME_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 NAME_cmp(int, int);
};

sub make_opclass
{
	my ($name, $body) = @_;

	return $opclass =~ s/NAME/$name/gr =~ s/BODY/$body/r;
}

sub runs
{
	my ($index, $db) = @_;

	return $node->safe_psql($db // 'postgres', "SELECT count(*) FROM lsm_runs('$index') WHERE state <> 'open'");
}

sub worker_pid
{
	return $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker' LIMIT 1});
}

# 1. Workers do the large merges, and merge an idle index to a few runs.
$node->safe_psql('postgres', q{
CREATE TABLE t (k int, s text COLLATE "C");
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_s ON t USING lsm (s, k DESC);
});
my $load = load_start($node, name => 'a', clients => 3, transactions => 20,
	scripts => [ [ 1, 'INSERT INTO t SELECT (random() * 1000)::int, \'s\' || i % 50 FROM generate_series(1, 200) i;' ] ]);
my $seen = 0;
foreach (1 .. 100)
{
	$seen ||= worker_pid() ne '';
	last if $seen;
	sleep 0.02;
}
ok($seen, 'a worker is started during the load');
unlike(load_stop($load), qr/ERROR|aborted/, 'writers have no errors beside workers');
foreach my $index (qw(t_k t_s))
{
	ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('$index')"), "idle index $index is merged to a few runs");
	# A worker reports the remaining work when its transaction ends. The report of an earlier worker may arrive late.
	my $counters = "SELECT concat_ws('|', entries_inserted, batches >= 0, pages_flushed > 100, merges > 10, bytes_merged > 0,
		write_amplification > 1, last_compaction IS NOT NULL, debt_bytes) FROM pg_stat_lsm_indexes WHERE indexrelname = '$index'";
	ok($node->poll_query_until('postgres', $counters, '12000|t|t|t|t|t|t|0'), "$index: the counters match what was done")
	  or diag $node->safe_psql('postgres', $counters);
}
check_clean($node, 'indexes are sound after the workers');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker'"), 'workers exit when nothing is left to merge');
my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_lsm launcher'});
like($launcher, qr/^\d+$/, 'the launcher is shown in pg_stat_activity');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($launcher)");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_lsm launcher' AND pid <> $launcher"),
	'a terminated launcher is restarted');
$node->safe_psql('postgres', 'SELECT lsm_stat_reset()');
is($node->safe_psql('postgres', "SELECT sum(entries_inserted + merges), count(write_amplification) FROM pg_stat_lsm_indexes"), '0|0', 'lsm_stat_reset() resets the counters');

# 2. A database can be dropped, copied and renamed while workers are merging in it.
$node->safe_psql('postgres', 'CREATE DATABASE scratch');
$node->safe_psql('scratch', 'CREATE EXTENSION pg_lsm');
$node->safe_psql('scratch', make_opclass('slow', 'PERFORM pg_sleep(0.0005);'));
$node->safe_psql('scratch', q{
SET client_min_messages = error;
CREATE TABLE t (k int);
CREATE INDEX t_k ON t USING lsm (k);
CREATE TABLE u (k int);
INSERT INTO u SELECT i % 1000 FROM generate_series(1, 300) i;
CREATE INDEX u_k ON u USING lsm (k slow_ops);
INSERT INTO t SELECT random() * 1000 FROM generate_series(1, 6000) i;
INSERT INTO u SELECT random() * 1000 FROM generate_series(1, 40) i;
INSERT INTO t SELECT random() * 1000 FROM generate_series(1, 6000) i;
});
my $begin = time;
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE scratch');
$node->safe_psql('postgres', 'ALTER DATABASE scratch RENAME TO renamed');
$node->safe_psql('renamed', 'INSERT INTO t SELECT random() * 1000 FROM generate_series(1, 6000) i');
$node->safe_psql('postgres', 'DROP DATABASE renamed');
cmp_ok(time - $begin, '<', 60, 'CREATE DATABASE ... TEMPLATE, ALTER and DROP DATABASE right after a load');
is($node->safe_psql('copied', "SELECT lsm_check('t_k', true), lsm_check('u_k', true)"), '|', 'indexes of the copied database are sound');
my $counted = q{SELECT entries_inserted FROM pg_stat_lsm_indexes WHERE indexrelname = 't_k'};
$node->safe_psql('copied', 'INSERT INTO t SELECT i FROM generate_series(1, 100) i');
is($node->safe_psql('copied', $counted), 100, 'the copied database has counters of its own');
$node->safe_psql('postgres', 'ALTER DATABASE copied IS_TEMPLATE true');
like(($node->psql('postgres', 'DROP DATABASE copied'))[2], qr/cannot drop a template database/, 'DROP DATABASE fails');
is($node->safe_psql('copied', $counted), 100, 'a failed DROP DATABASE leaves the counters as they were');
$node->safe_psql('postgres', 'ALTER DATABASE copied IS_TEMPLATE false');
$node->safe_psql('postgres', 'DROP DATABASE copied');
# No worker connects to a database that is about to be dropped. DROP DATABASE holds its lock and waits up to five
# seconds for the last session. That session writes until then, so its index is long due when the session ends.
$node->safe_psql('postgres', 'CREATE DATABASE leaving');
$node->safe_psql('leaving', 'CREATE EXTENSION pg_lsm; CREATE TABLE t (k int); CREATE INDEX t_k ON t USING lsm (k)');
my $last = $node->background_psql('leaving');
my $drop = $node->background_psql('postgres');
$drop->query_until(qr/started/, "\\echo started\nDROP DATABASE leaving;\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks JOIN pg_database d ON d.oid = objid
	WHERE locktype = 'object' AND datname = 'leaving' AND mode = 'AccessExclusiveLock' AND granted}), 'a database is about to be dropped');
$last->query_safe('INSERT INTO t SELECT random() * 1000 FROM generate_series(1, 6000) i') foreach 1 .. 2;
sleep 1;
$last->quit;
ok($drop->quit, 'DROP DATABASE succeeds');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_database WHERE datname = 'leaving'}), 0, 'the database is gone');
# By then, workers have started on the work that came later.
$node->safe_psql('postgres', 'INSERT INTO t SELECT random() * 1000, \'x\' FROM generate_series(1, 6000) i');
ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('t_k')"), 'workers continue in other databases');
unlike(slurp_file($node->logfile), qr/does not exist/, 'no worker tries to connect to the dropped database');

# 3. A terminated worker, a killed server.
$node->safe_psql('postgres', make_opclass('slow', ''));
$node->safe_psql('postgres', q{
CREATE TABLE u (k int);
CREATE INDEX u_k ON u USING lsm (k slow_ops);
});
# Slow only while needed, because the checks compare as well.
sub slow_down
{
	my ($seconds) = @_;

	$node->safe_psql('postgres', (split /CREATE OPERATOR CLASS/, make_opclass('slow', $seconds ? "PERFORM pg_sleep($seconds);" : ''))[0] =~ s/CREATE FUNCTION/CREATE OR REPLACE FUNCTION/r);
	return;
}

sub load_slow
{
	slow_down(0);
	$node->safe_psql('postgres', 'INSERT INTO u SELECT (random() * 1000)::int FROM generate_series(1, 60)');
	slow_down(0.005);
	$node->safe_psql('postgres', 'INSERT INTO u SELECT (random() * 1000)::int FROM generate_series(1, 10)');
	return;
}

# The pid of a worker that is merging, or 0. The worker may have finished all work.
sub busy_worker
{
	foreach (1 .. 20)
	{
		load_slow();
		foreach (1 .. 100)
		{
			my $pid = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_progress_lsm_compaction
				WHERE indexrelid = 'u_k'::regclass AND phase = 'merging' AND blocks_total > 0});

			return $pid if $pid;
			sleep 0.02;
		}
	}
	return 0;
}
my $pid = busy_worker();
cmp_ok($pid, '>', 0, 'pg_stat_progress_lsm_compaction shows a worker');
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 10000)"), 't', 'a worker exits when it is terminated');
slow_down(0);
check_clean($node, 'indexes are sound after a worker was terminated');
cmp_ok(busy_worker(), '>', 0, 'another worker continues the merge');
kill_postmaster($node);
$node->start;
slow_down(0);
check_clean($node, "indexes are sound after the server was killed during a worker's merge");
# After a restart, no work is known until somebody writes to the index or VACUUM visits it.
$node->safe_psql('postgres', 'VACUUM u');
ok($node->poll_query_until('postgres', q{SELECT count(*) <= 6 AND count(*) FILTER (WHERE state = 'merging') = 0 FROM lsm_runs('u_k')}), 'the merge is resumed after VACUUM');
check_clean($node, 'indexes are sound after the resumed merge');

# One index has several large jobs. Two workers each perform a different job.
change_settings($node, 'pg_lsm.max_workers' => 0);
$node->safe_psql('postgres', q{
TRUNCATE u;
SET pg_lsm.debug_merge_fanout = 32;
SET pg_lsm.debug_foreground_blocks = 0;
INSERT INTO u SELECT (random() * 100000)::int FROM generate_series(1, 2000);
});
slow_down(0.001);
my $jobs = q{SELECT count(*) >= %d FROM lsm_runs('u_k') WHERE state = 'merging'};
change_settings($node, 'pg_lsm.max_workers' => 2);
$node->safe_psql('postgres', 'INSERT INTO u SELECT (random() * 100000)::int FROM generate_series(1, 10)');
ok($node->poll_query_until('postgres', sprintf $jobs, 1), 'a large job is under way');
# These rows make one more job. If the first job ends too early, more rows are needed.
my $two = 0;
foreach (1 .. 20)
{
	$node->safe_psql('postgres', q{
SET pg_lsm.debug_foreground_blocks = 0;
INSERT INTO u SELECT (random() * 100000)::int FROM generate_series(1, 400);
});
	foreach (1 .. 30)
	{
		$two = $node->safe_psql('postgres', q{SELECT count(DISTINCT p.pid) = 2 FROM pg_stat_progress_lsm_compaction p JOIN pg_stat_activity a USING (pid)
	WHERE a.backend_type = 'pg_lsm worker' AND p.indexrelid = 'u_k'::regclass}) eq 't';
		last if $two;
		sleep 0.1;
	}
	last if $two;
}
ok($two, 'two workers work on one index');
is($node->safe_psql('postgres', "SELECT lsm_check('u_k')"), '', 'the index is sound while two workers work on it');
change_settings($node, 'pg_lsm.max_workers' => 1);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker'}), 'a lower max_workers ends a worker');
change_settings($node, 'pg_lsm.max_workers' => 2);
slow_down(0);
ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('u_k')"), 'two workers leave few runs in one index');
check_clean($node, 'indexes are sound after two workers on one index');
is($node->safe_psql('postgres', q{SELECT (SELECT sum(entries) FROM lsm_runs('u_k')) = count(*) FROM u}), 't', 'the manifest counts each entry once');

# 4. A comparison function fails in workers only. Workers retry the index at growing intervals, writers continue, and
# other indexes are merged.
$node->safe_psql('postgres', make_opclass('bad', q{
	IF current_setting('application_name') = 'pg_lsm worker' THEN RAISE 'this operator class is broken'; END IF;}));
my $log_start = -s $node->logfile;
$begin = time;
$node->safe_psql('postgres', q{
CREATE TABLE b (k int);
CREATE INDEX b_k ON b USING lsm (k bad_ops);
INSERT INTO b SELECT (random() * 1000)::int FROM generate_series(1, 1000);
INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 3000) i;
});
ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('t_k')"), 'workers merge other indexes when one fails');
while (time < $begin + 7)
{
	$node->safe_psql('postgres', 'INSERT INTO b SELECT (random() * 1000)::int FROM generate_series(1, 100)');
	sleep 0.2;
}
my $log = substr(slurp_file($node->logfile), $log_start);
my $errors = () = $log =~ /ERROR:  this operator class is broken/g;
cmp_ok($errors, '>', 0, 'an error in a worker is logged');
cmp_ok($errors, '<', 8, 'workers do not log the error repeatedly');
like($log, qr/background compaction of index "public.b_k"/, 'the log names the failing index');
check_clean($node, 'indexes are sound after errors in workers');
$node->safe_psql('postgres', 'DROP TABLE b');

# 5. Workers run as the table's owner, with restrictions.
$node->safe_psql('postgres', 'CREATE ROLE alice; GRANT CREATE ON SCHEMA public TO alice');
$node->safe_psql('postgres', make_opclass('tell', q{
	IF current_setting('application_name') = 'pg_lsm worker' THEN
		RAISE WARNING 'compared by %, path %', current_user, current_setting('search_path');
	END IF;}));
$log_start = -s $node->logfile;
$node->safe_psql('postgres', q{
SET SESSION AUTHORIZATION alice;
CREATE TABLE a (k int);
CREATE INDEX a_k ON a USING lsm (k tell_ops);
INSERT INTO a SELECT (random() * 1000)::int FROM generate_series(1, 200);
});
$node->safe_psql('postgres', 'INSERT INTO a SELECT (random() * 1000)::int FROM generate_series(1, 200)');
ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('a_k')"), 'a worker merges an index of another owner');
$log = substr(slurp_file($node->logfile), $log_start);
like($log, qr/compared by alice, path pg_catalog, public, pg_temp\n/, "comparison functions run as the owner, with a safe search_path that has the function's schema");
unlike($log, qr/compared by (?!alice)/, 'comparison functions run only as the owner');
$node->safe_psql('postgres', q{
CREATE OR REPLACE FUNCTION tell_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('application_name') = 'pg_lsm worker' THEN PERFORM set_config('role', 'none', true); END IF;
	RETURN pg_catalog.btint4cmp(a, b);
END $$;
INSERT INTO a SELECT (random() * 1000)::int FROM generate_series(1, 200);
});
$node->wait_for_log(qr/cannot set parameter "role" within security-restricted operation/, $log_start);
pass('comparison functions cannot escape from that');
$node->safe_psql('postgres', 'DROP TABLE a');

# 6. Tables that no worker can see or lock: temporary, new and locked ones.
is($node->safe_psql('postgres', q{
CREATE TEMP TABLE mine (k int);
CREATE INDEX mine_k ON mine USING lsm (k);
INSERT INTO mine SELECT (random() * 1000)::int FROM generate_series(1, 3000);
SELECT count(*) < 30 FROM lsm_runs('mine_k');
SELECT lsm_check('mine_k', true);
SELECT stats_reset IS NULL FROM pg_stat_lsm_indexes WHERE indexrelname = 'mine_k';
SELECT lsm_compact('mine_k');
SELECT count(*) FROM lsm_runs('mine_k') WHERE state <> 'open';
}), "t\n\nt\n\n1", 'temporary tables are merged by their session');
is($node->safe_psql('postgres', q{
BEGIN;
CREATE TABLE fresh (k int);
CREATE INDEX fresh_k ON fresh USING lsm (k);
INSERT INTO fresh SELECT (random() * 1000)::int FROM generate_series(1, 3000);
SELECT count(*) < 30 FROM lsm_runs('fresh_k');
TRUNCATE t;
INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 3000);
SELECT count(*) < 30 FROM lsm_runs('t_k');
COMMIT;
BEGIN;
LOCK TABLE t IN EXCLUSIVE MODE;
INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 3000);
SELECT count(*) < 40 FROM lsm_runs('t_k');
COMMIT;
}), "t\nt\nt", 'new and locked tables are merged by their writer');
check_clean($node, 'indexes are sound after merges by writers');

# 7. lsm_compact.
my $rows = $node->safe_psql('postgres', "SELECT count(*), sum(hashtext(k || s)) FROM t");
$node->safe_psql('postgres', 'INSERT INTO t SELECT k, s FROM t WHERE k < 10');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k < 5');
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(hashtext(k || s)) FROM t WHERE k >= 0';
$rows = $node->safe_psql('postgres', $by_index);
$node->safe_psql('postgres', "BEGIN; SELECT lsm_compact('t_k'); SELECT lsm_compact('t_s'); COMMIT");
is($node->safe_psql('postgres', "SELECT count(*), min(state) FROM lsm_runs('$_') WHERE state <> 'open'"), '1|packed', "lsm_compact leaves one run of $_")
  foreach qw(t_k t_s);
is($node->safe_psql('postgres', $by_index), $rows, 'the rows are the same after lsm_compact');
check_clean($node, 'indexes are sound after lsm_compact');
$node->safe_psql('postgres', "SELECT lsm_compact('t_k')");
my %wrong = (
	"SET ROLE alice; SELECT lsm_compact('t_k')" => qr/must be owner of index t_k/,
	"SELECT lsm_compact('t')" => qr/is not an lsm index/,
	"BEGIN READ ONLY; SELECT lsm_compact('t_k')" => qr/cannot execute lsm_compact\(\) in a read-only transaction/,
	"SET ROLE alice; SELECT lsm_stat_reset()" => qr/permission denied/);
foreach my $query (sort keys %wrong)
{
	my ($ret, $out, $err) = $node->psql('postgres', $query);
	like($err, $wrong{$query}, $query);
}
# Interrupted by a timeout, then resumed.
load_slow();
my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '100ms'; SELECT lsm_compact('u_k')");
like($err, qr/statement timeout/, 'a timeout interrupts lsm_compact');
slow_down(0);
check_clean($node, 'indexes are sound after lsm_compact is resumed');
change_settings($node, 'pg_lsm.max_workers' => 0);
$node->safe_psql('postgres', 'INSERT INTO u SELECT (random() * 1000)::int FROM generate_series(1, 300)');
slow_down(0.005);
my $compact = $node->background_psql('postgres');
$compact->query_until(qr/started/, "\\echo started\nSELECT lsm_compact('u_k');\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_progress_lsm_compaction p JOIN pg_stat_activity a USING (pid)
	WHERE a.backend_type = 'client backend' AND p.indexrelid = 'u_k'::regclass AND p.relid = 'u'::regclass}), 'the progress of lsm_compact is shown');
is($node->safe_psql('postgres', 'SET ROLE alice; SELECT count(*), count(phase), count(indexrelid) FROM pg_stat_progress_lsm_compaction'),
	'1|0|0', 'other users do not see what lsm_compact works on');
slow_down(0);
$node->safe_psql('postgres', 'INSERT INTO u SELECT (random() * 1000)::int FROM generate_series(1, 20)');
$node->safe_psql('postgres', 'VACUUM u');
ok($compact->quit, 'inserts and VACUUM continue beside lsm_compact');
check_clean($node, 'indexes are sound after lsm_compact beside writers');
change_settings($node, 'pg_lsm.max_workers' => 2);

# 8. REINDEX, TRUNCATE and DROP INDEX CONCURRENTLY beside workers.
$load = load_start($node, name => 'b', clients => 2, seconds => 5,
	scripts => [ [ 5, "INSERT INTO t SELECT (random() * 1000)::int, 's' || i % 50 FROM generate_series(1, 100) i;" ],
		[ 1, 'DELETE FROM t WHERE k < 50;' ] ]);
my $end = time + 4;
while (time < $end)
{
	$node->safe_psql('postgres', 'REINDEX INDEX t_k');
	$node->safe_psql('postgres', 'VACUUM t');
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_s');
	$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY t_more ON t USING lsm (k, s)');
	$node->safe_psql('postgres', "SELECT lsm_compact('t_k')");
	$node->safe_psql('postgres', 'TRUNCATE t');
	$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY t_more');
}
unlike(load_stop($load), qr/ERROR|aborted/, 'writers have no errors beside DDL and workers');
check_clean($node, 'indexes are sound after DDL beside workers');

# Workers can be disabled and enabled while the server runs.
change_settings($node, 'pg_lsm.max_workers' => 0);
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker'"), 'workers exit when max_workers is 0');
$node->safe_psql('postgres', "TRUNCATE t; INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 5000)");
cmp_ok(runs('t_k'), '<', 50, 'without workers, writers merge');
cmp_ok(runs('t_k'), '>', 6, 'writers do not merge everything');
is(worker_pid(), '', 'no worker is running when max_workers is 0');
change_settings($node, 'pg_lsm.max_workers' => 2);
ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('t_k')"), 'workers start again when max_workers allows it');

# 9. A standby starts no workers and writes nothing, until it is promoted.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', "INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 5000)");
catch_up($node, $standby);
check_clean($standby, 'indexes on the standby are sound', no_check => 1);
my $children = `ps --no-headers -o args --ppid @{[ (slurp_file($standby->data_dir . '/postmaster.pid') =~ /^(\d+)/)[0] ]}`;
unlike($children, qr/pg_lsm/, 'a standby runs neither launcher nor workers');
($ret, $out, $err) = $standby->psql('postgres', "SELECT lsm_compact('t_k')");
like($err, qr/cannot execute lsm_compact\(\) during recovery/, 'lsm_compact reports that it cannot run on a standby');
is($standby->safe_psql('postgres', 'SELECT sum(merges) FROM pg_stat_lsm_indexes'), 0, 'the views work on a standby');
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 5000)");
ok($standby->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('t_k')"), 'workers start after promotion');
check_clean($standby, 'indexes are sound after promotion');
$standby->stop;

# 10. Commits would have to wait for a missing standby. The workers do not wait.
$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
$node->safe_psql('postgres', "SET synchronous_commit = local; INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 5000)") foreach 1 .. 2;
ok($node->poll_query_until('postgres', "SELECT count(*) <= 6 FROM lsm_runs('t_k')"), 'workers do not wait for a synchronous standby');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
check_clean($node, 'indexes are sound after merges without the synchronous standby');

# 11. No worker can be started: the writers do all merges.
$node->append_conf('postgresql.conf', 'max_worker_processes = 1');
$node->restart;
$node->safe_psql('postgres', "INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 2000)") foreach 1 .. 3;
cmp_ok(runs('t_k'), '<', 50, 'without free worker slots, writers merge');
check_clean($node, 'indexes are sound without free worker slots');
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
$node->safe_psql('postgres', "INSERT INTO t SELECT (random() * 1000)::int, 'x' FROM generate_series(1, 2000)");
cmp_ok(runs('t_k'), '<', 50, 'without a launcher, writers merge');
check_clean($node, 'indexes are sound without a launcher');

# Shutdown is fast, with and without workers.
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
load_slow();
$begin = time;
$node->stop('fast');
cmp_ok(time - $begin, '<', 10, 'the server stops quickly while a worker merges');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process has crashed');
done_testing();
