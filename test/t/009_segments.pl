# Merges write one segment per step. The test checks how much space merges use, also while a transaction is open or the
# file cannot grow; crashes in the middle of steps; and what a standby reads meanwhile.
#
# PG_LSM_KILLS: the number of kills in this test and 001_crash together.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_new_node('segments', conf => "
$full
pg_lsm.debug_foreground_blocks = 8
pg_lsm.max_workers = 1
pg_lsm.idle_delay = '-1'
max_prepared_transactions = 10
");

sub size
{
	return $node->safe_psql('postgres', "SELECT pg_relation_size('$_[0]')");
}

# 1. An idle merge of a whole index, with several segment sizes: how much does the file grow? The index is loaded in
# pieces, so nothing in it is free before.
sub growth
{
	my ($table, $segment_size) = @_;

	$node->safe_psql('postgres', qq{
		CREATE TABLE $table (k int) WITH (autovacuum_enabled = off);
		INSERT INTO $table SELECT hashint4(i) FROM generate_series(1, 1000000) i;
		CREATE INDEX ${table}_k ON $table USING lsm (k) WITH (merge_fanout = 32);
		INSERT INTO $table SELECT hashint4(i) FROM generate_series(1000001, 1500000) i;
	});
	my $before = size("${table}_k");
	change_settings($node, 'pg_lsm.debug_segment_size' => $segment_size, 'pg_lsm.idle_delay' => '50ms');
	$node->safe_psql('postgres', "INSERT INTO $table VALUES (1)");
	ok($node->poll_query_until('postgres', "SELECT count(*) <= 2 FROM lsm_runs('${table}_k')"), "$table is merged to a few runs");
	change_settings($node, 'pg_lsm.idle_delay' => '-1');
	return (size("${table}_k") - $before) / $before;
}

my $at_once = growth('whole', '64MB');
my $in_segments = growth('segments', '512kB');
note "the file grows by $at_once, in segments by $in_segments";
cmp_ok($at_once, '>', 0.9, 'a merge into one segment needs as much space as the index');
# About 60 inputs are single segments, which are freed when the job ends.
cmp_ok($in_segments, '<', 0.6, 'a merge into many segments needs far less space than the index');
is($node->safe_psql('postgres', "SELECT lsm_check('segments_k', true)"), '', 'an index merged into many segments is sound');
$node->safe_psql('postgres', 'DROP TABLE whole, segments');

# A load while a transaction stays open. Blocks that merges freed are used again although the transaction's snapshot is
# older.
change_settings($node, 'pg_lsm.debug_segment_size' => 0, 'pg_lsm.max_workers' => 2);
$node->safe_psql('postgres', q{
	CREATE TABLE held (k int) WITH (autovacuum_enabled = off);
	CREATE INDEX held_k ON held USING lsm (k);
	INSERT INTO held SELECT hashint4(i) FROM generate_series(1, 100000) i;
});
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
my $sum = $old->query_safe('SELECT count(*), sum(k::bigint) FROM held WHERE k IS NOT NULL');
my $largest = 0;
foreach my $i (1 .. 30)
{
	$node->safe_psql('postgres', "INSERT INTO held SELECT hashint4(i) FROM generate_series($i * 100000 + 1, ($i + 1) * 100000) i");
	my $now = size('held_k');
	$largest = $now if $now > $largest;
}
is($old->query_safe('SELECT count(*), sum(k::bigint) FROM held WHERE k IS NOT NULL'), $sum, 'the old snapshot sees its rows');
# All pending merges are done, in the end all at once.
ok($node->poll_query_until('postgres', q{SELECT debt_bytes = 0 FROM pg_stat_lsm_indexes WHERE indexrelname = 'held_k'}), 'workers complete all merges while a transaction is open');
$node->safe_psql('postgres', q{SELECT lsm_compact('held_k')});
my $compacted = size('held_k');
$largest = $compacted if $compacted > $largest;
is($old->query_safe('SELECT count(*), sum(k::bigint) FROM held WHERE k IS NOT NULL'), $sum, 'the old snapshot sees its rows after lsm_compact');
my $settled = $node->safe_psql('postgres', q{SELECT sum(bytes) FROM lsm_runs('held_k')});
note "largest $largest, settled $settled";
cmp_ok($largest, '<', 1.3 * $settled + 8 * 1024 * 1024, 'the file stays small while a transaction is open');
$old->query_safe('COMMIT');
$old->quit;
is($node->safe_psql('postgres', "SELECT lsm_check('held_k', true)"), '', 'held_k is sound');
$node->safe_psql('postgres', 'DROP TABLE held');

# 2. A standby reads with older snapshots while segments are installed and inputs freed.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = off\nmax_standby_streaming_delay = -1");
$standby->start;

# The writers merge slowly, so there are always unfinished jobs.
change_settings($node, 'pg_lsm.debug_segment_size' => 8, 'pg_lsm.max_workers' => 0, 'pg_lsm.debug_merge_fanout' => 4,
	'pg_lsm.debug_foreground_blocks' => 4, 'pg_lsm.debug_page_entries' => 20);
$node->safe_psql('postgres', q{
	CREATE TABLE t (k int, s text COLLATE "C");
	CREATE INDEX t_k ON t USING lsm (k);
	CREATE INDEX t_s ON t USING lsm (s, k DESC);
});
# Before that, the standby does not have the table.
catch_up($node, $standby);
my @write = (scripts => [
		[ 5, 'INSERT INTO t SELECT (random() * 1000)::int, \'s\' || i % 50 FROM generate_series(1, 100) i;' ],
		[ 1, "\\set k random(0, 1000)\nDELETE FROM t WHERE k = :k;" ] ]);
my $jobs = 0;
my $wrong = '';
foreach my $round (1 .. 2)
{
	my $load = load_start($node, name => "load$round", clients => 2, transactions => 50, @write);
	foreach (1 .. 4)
	{
		$jobs += $node->safe_psql('postgres', q{SELECT count(*) FROM lsm_runs('t_k') WHERE state = 'merging' AND segments > 0});
		foreach my $query ('SELECT k FROM t WHERE k BETWEEN 200 AND 700', q{SELECT s, k FROM t WHERE s > 's2'})
		{
			# One transaction, so both queries have the same snapshot.
			my $result = $standby->safe_psql('postgres', "
				BEGIN ISOLATION LEVEL REPEATABLE READ;
				SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
				SELECT count(*), md5(string_agg(q::text, ' ' ORDER BY q::text COLLATE \"C\")) FROM ($query) q;
				SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on;
				SELECT count(*), md5(string_agg(q::text, ' ' ORDER BY q::text COLLATE \"C\")) FROM ($query) q;
				COMMIT;");
			my @rows = split /\n/, $result;
			$wrong .= "$query: $result\n" if @rows != 2 || $rows[0] ne $rows[1];
		}
		$node->safe_psql('postgres', 'VACUUM t');
	}
	unlike(load_stop($load), qr/ERROR|aborted/, "round $round: the load has no errors");
}
cmp_ok($jobs, '>', 0, 'jobs were in progress during the load');
is($wrong, '', 'a standby finds each row exactly once');
catch_up($node, $standby);
check_clean($standby, 'the standby is sound after the loads');
check_clean($node, 'the primary is sound after the loads');
$standby->stop;

# 3. Crashes while jobs are in progress, in the middle of steps: of the whole server, or of a process that merges.
my $rounds = defined $ENV{PG_LSM_KILLS} ? int($ENV{PG_LSM_KILLS} / 2) : 6;
my $found = 0;
$node->safe_psql('postgres', q{
	CREATE TABLE committed (who int PRIMARY KEY, rows bigint);
	INSERT INTO committed SELECT i, 0 FROM generate_series(0, 2) i;
	CREATE TABLE commits (who int, script int, n bigint, PRIMARY KEY (who, script));
	INSERT INTO commits SELECT who, script, 0 FROM generate_series(0, 2) who, generate_series(0, 1) script;
});
$node->safe_psql('postgres', 'ALTER TABLE t ADD who int');
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
foreach my $round (1 .. $rounds)
{
	my $log_at = -s $node->logfile;

	$node->append_conf('postgresql.conf', 'full_page_writes = ' . ($round % 2 ? 'on' : 'off'));
	change_settings($node, 'pg_lsm.max_workers' => $round % 3 == 2 ? 2 : 0, 'pg_lsm.idle_delay' => $round % 3 == 2 ? '10ms' : '-1', 'pg_lsm.debug_merge_fanout' => 2 + $round % 3);
	my $load = load_start($node, name => "crash$round", clients => 3, seconds => 20, log => 1, scripts => [
			[ 5, "BEGIN;\nINSERT INTO t SELECT (random() * 1000)::int, 's' || i % 50, :client_id FROM generate_series(1, 100) i;\nUPDATE committed SET rows = rows + 100 WHERE who = :client_id;\nUPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 0;\nEND;\n" ],
			[ 1, "\\set k random(0, 1000)\nBEGIN;\nWITH gone AS (DELETE FROM t WHERE k BETWEEN :k AND :k + 30 AND who = :client_id RETURNING 1)\nUPDATE committed SET rows = rows - (SELECT count(*) FROM gone) WHERE who = :client_id;\nUPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 1;\nEND;\n" ],
			[ $round % 2, "SELECT lsm_compact('t_k');" ],
			[ $round % 2, 'VACUUM (TRUNCATE off) t;' ] ]);
	$node->poll_query_until('postgres', 'SELECT sum(n) > 0 FROM commits') or die 'the load did not begin';
	foreach (1 .. 200)
	{
		my ($ret, $out) = $node->psql('postgres', q{SELECT count(*) FROM unnest('{t_k,t_s}'::regclass[]) i, lsm_runs(i) WHERE state = 'merging' AND segments > 0});
		last if $out ne '' && $out > 0 && ++$found;
		sleep 0.01;
	}
	sleep rand 0.3;
	if ($round % 2 || !kill_process($node, q{SELECT pid FROM pg_stat_progress_lsm_compaction WHERE phase = 'merging' AND pid <> pg_backend_pid() LIMIT 1}))
	{
		kill_postmaster($node);
		load_stop($load);
		$node->start;
	}
	else
	{
		load_stop($load);
		wait_for_server($node);
	}
	check_clean($node, "indexes are sound after crash $round");
	is($node->safe_psql('postgres', q{SELECT string_agg(format('%s: %s rows, should be %s', who, coalesce(have, 0), rows), ', ')
			FROM committed LEFT JOIN (SELECT who, count(*) AS have FROM t GROUP BY who) x USING (who) WHERE coalesce(have, 0) <> rows}),
		'', "after crash $round: each table has exactly the committed rows");
	is(lost_commits($node, $load), '', "after crash $round: no acknowledged commit is lost");
	unlike(log_since($node, $log_at), qr/PANIC|TRAP|is corrupted|terminated by signal (?!9:)/, "crash $round: the log has no other errors");
	$node->safe_psql('postgres', 'TRUNCATE t; UPDATE committed SET rows = 0') if $round % 6 == 0;
}
cmp_ok($found, '>', $rounds / 2, 'jobs were under way when the server was killed');
change_settings($node, 'pg_lsm.max_workers' => 1, 'pg_lsm.idle_delay' => '20ms', 'pg_lsm.debug_merge_fanout' => 4);
$node->safe_psql('postgres', 'VACUUM t');
ok($node->poll_query_until('postgres', q{SELECT count(*) <= 8 FROM lsm_runs('t_k')}), 'merges are completed after the crashes');
change_settings($node, 'pg_lsm.max_workers' => 0);
$node->safe_psql('postgres', q{SELECT lsm_compact('t_k'), lsm_compact('t_s')});
$node->safe_psql('postgres', 'VACUUM t');
check_clean($node, 'indexes are sound after the last merge');
is(lost_blocks($node, 't_k') . lost_blocks($node, 't_s'), '', 'no block is lost');

# 4. VACUUM while jobs are in progress: it may drop the segments at which the jobs continue.
change_settings($node, 'pg_lsm.debug_segment_size' => 4, 'pg_lsm.debug_merge_fanout' => 3, 'pg_lsm.debug_foreground_blocks' => 8,
	'pg_lsm.debug_page_entries' => 7, 'pg_lsm.debug_batch_min_entries' => 4, 'pg_lsm.debug_batch_entries' => 50);
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', 'TRUNCATE t');
	load_stop(load_start($node, name => "vacuum$round", clients => 3, seconds => 3, scripts => [
		[ 6, "\\set k random(0, 100)\nINSERT INTO t SELECT (:k * i) % 100, 's' || i % 10 FROM generate_series(1, 30) i;" ],
		[ 1, "\\set k random(0, 100)\nDELETE FROM t WHERE k BETWEEN :k AND :k + 3;" ],
		[ 1, 'VACUUM (TRUNCATE off) t;' ] ]));
	check_clean($node, "VACUUM beside merges $round");
}
$node->stop;

# 5. A file that cannot grow, as in a full tablespace. Writers get an error, and nothing is lost. After DELETE and
# VACUUM the index has room for merges and for new rows.
SKIP:
{
	my $small = new_node('full', init => { extra => ['--wal-segsize=1'] }, conf => "
fsync = off
pg_lsm.debug_buffer_entries = 0
pg_lsm.debug_page_entries = 0
pg_lsm.debug_merge_fanout = 4
pg_lsm.debug_segment_size = 16
work_mem = 64MB		# the test's sorts need no files
");
	$small->start;
	$small->safe_psql('postgres', q{
		CREATE EXTENSION pg_lsm;
		CREATE TABLE w (k int) WITH (autovacuum_enabled = off);
		-- Larger than the table.
		CREATE INDEX w_k ON w USING lsm (md5(k::text), md5((k + 1)::text), md5((k + 2)::text));
	});
	my ($postmaster) = slurp_file($small->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $limit = 6 * 1024 * 1024;
	skip 'there is no prlimit', 1 if system("prlimit --pid $postmaster --fsize=$limit:$limit") != 0;
	my ($ret, $out, $err);
	my $rows = 0;
	foreach my $batch (1 .. 100)
	{
		($ret, $out, $err) = $small->psql('postgres', "INSERT INTO w SELECT hashint4(i) FROM generate_series($batch * 1000, $batch * 1000 + 999) i");
		last if $ret != 0;
		$rows += 1000;
	}
	like($err, qr/could not extend file/, 'the file cannot grow any more');
	is($small->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM w WHERE md5(k::text) IS NOT NULL'), $rows, 'no row is lost when the file is full');
	check_clean($small, 'a full index is sound');
	$small->safe_psql('postgres', 'DELETE FROM w WHERE ctid NOT IN (SELECT ctid FROM w LIMIT (SELECT count(*) / 10 FROM w))');
	$small->safe_psql('postgres', 'VACUUM w');
	check_clean($small, 'a full index is sound after DELETE and VACUUM');
	($ret, $out, $err) = $small->psql('postgres', q{SELECT lsm_compact('w_k')});
	is($err, '', 'lsm_compact has room after VACUUM');
	is($small->safe_psql('postgres', q{SELECT count(*) FROM lsm_runs('w_k') WHERE state <> 'open'}), 1, 'lsm_compact leaves one run in a full index');
	check_clean($small, 'a full index is sound after lsm_compact');
	($ret, $out, $err) = $small->psql('postgres', "INSERT INTO w SELECT hashint4(i) FROM generate_series(1, $rows / 2) i");
	is($err, '', 'an index that was full takes new rows');
	$small->safe_psql('postgres', 'VACUUM w');
	$small->safe_psql('postgres', q{SELECT lsm_compact('w_k')});
	check_clean($small, 'an index that was full is sound after new rows');
	unlike(slurp_file($small->logfile), qr/PANIC|TRAP|terminated by signal/, 'no process has crashed');
	$small->stop;
}
done_testing();
