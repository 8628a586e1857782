# Crashes in the middle of a load. After each crash, every index finds every committed row, and lsm_check reports
# nothing. At the end no block is lost. The server dies in several ways: it is stopped without a checkpoint, its
# postmaster is killed, or one of its processes is killed. That process is any client, one that performs a step of a
# merge, one that runs VACUUM (which also truncates the file), one that runs lsm_compact, or a worker.
#
# PG_LSM_KILLS: the number of kills in this test and 009_segments together.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = defined $ENV{PG_LSM_KILLS} ? int(($ENV{PG_LSM_KILLS} + 1) / 2) : 24;
my $node = new_node('crash', conf => "
fsync = off
restart_after_crash = on
wal_level = replica
checkpoint_timeout = 30s
max_wal_size = 64MB
");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, f float8, s text COLLATE "C", n numeric, who int) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_sk ON t USING lsm (s DESC, k) INCLUDE (f);
CREATE INDEX t_n ON t USING lsm (n, who);
CREATE INDEX t_part ON t USING lsm (f DESC NULLS LAST) WHERE k > 500;
-- Each client counts the rows that it has committed, and its commits, which
-- pgbench counts, too.
CREATE TABLE committed (who int PRIMARY KEY, rows bigint NOT NULL);
INSERT INTO committed SELECT i, 0 FROM generate_series(0, 9) i;
CREATE TABLE commits (who int, script int, n bigint, PRIMARY KEY (who, script));
INSERT INTO commits SELECT who, script, 0 FROM generate_series(0, 5) who, generate_series(0, 2) script;
});

my $insert = q{
\set k random(0, 1000)
\set n random(1, 60)
BEGIN;
INSERT INTO t SELECT (:k + i * 7919) % 1000, CASE WHEN i % 9 > 0 THEN i / 3.0 END, 's' || (:k * i) % 100, (:k + i) % 50 / 10.0, :client_id FROM generate_series(1, :n) i;
UPDATE committed SET rows = rows + :n WHERE who = :client_id;
UPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 0;
COMMIT;
};
my $abort = q{
\set k random(0, 1000)
BEGIN;
INSERT INTO t SELECT :k, i, 'aborted', i, -1 FROM generate_series(1, 20) i;
SAVEPOINT a;
INSERT INTO t SELECT :k, i, 'aborted', i, -1 FROM generate_series(1, 20) i;
ROLLBACK TO a;
INSERT INTO t SELECT :k, i, 'aborted', i, -1 FROM generate_series(1, 20) i;
ROLLBACK;
};
my $update = q{
\set k random(0, 1000)
UPDATE t SET k = k + 1, s = s || 'u' WHERE ctid IN (SELECT ctid FROM t WHERE k BETWEEN :k AND :k + 2 AND who = :client_id LIMIT 20);
};
my $delete = q{
\set k random(0, 1000)
BEGIN;
WITH gone AS (DELETE FROM t WHERE k BETWEEN :k AND :k + 20 AND who = :client_id RETURNING 1)
UPDATE committed SET rows = rows - (SELECT count(*) FROM gone) WHERE who = :client_id;
UPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 1;
COMMIT;
};

my $delete_all = q{
BEGIN;
DELETE FROM t WHERE who = :client_id;
UPDATE committed SET rows = 0 WHERE who = :client_id;
UPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 2;
COMMIT;
};

my @limits = (
	'',
	'-c pg_lsm.debug_merge_fanout=2 -c pg_lsm.debug_buffer_entries=2 -c pg_lsm.debug_page_entries=4 -c pg_lsm.debug_foreground_blocks=0 -c pg_lsm.debug_segment_size=2',
	'-c pg_lsm.debug_merge_fanout=2 -c pg_lsm.debug_foreground_blocks=100000 -c pg_lsm.debug_open_pages=3',
	'-c pg_lsm.debug_merge_fanout=8 -c pg_lsm.debug_buffer_entries=0 -c pg_lsm.debug_page_entries=0 -c pg_lsm.debug_foreground_blocks=0 -c pg_lsm.debug_segment_size=5');
# Which process is killed: a query that returns its pid if it exists.
my $client = q{backend_type = 'client backend' AND pid <> pg_backend_pid()};
my %victims = (
	backend => "SELECT pid FROM pg_stat_activity WHERE $client ORDER BY random() LIMIT 1",
	# The view does not show merges by writers, so any process that inserts will do.
	step => "SELECT coalesce((SELECT pid FROM pg_stat_progress_lsm_compaction WHERE phase = 'merging' LIMIT 1),
		(SELECT pid FROM pg_stat_activity WHERE $client AND state = 'active' AND query LIKE 'INSERT%' LIMIT 1))",
	vacuum => "SELECT pid FROM pg_stat_activity WHERE $client AND state = 'active' AND query LIKE 'VACUUM%' LIMIT 1",
	compact => "SELECT pid FROM pg_stat_activity WHERE $client AND state = 'active' AND query LIKE '%lsm_compact%' LIMIT 1",
	worker => q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker' LIMIT 1});
my @deaths = ('immediate', 'step', 'postmaster', 'vacuum', 'backend', 'compact', 'worker');
my %killed;

srand($ENV{PG_LSM_SEED} // 1);
my $log_at = 0;
foreach my $round (1 .. $rounds)
{
	my $death = $deaths[ $round % @deaths ];
	my $limits = $limits[ int($round / 2) % @limits ];
	my $seconds = 0.4 + rand(0.8);

	# Without full-page images, redo starts from the pages as they were on disk, so no image hides an error. (This is
	# sound: a kill tears no page.)
	$node->append_conf('postgresql.conf', 'full_page_writes = ' . ($round % 2 ? 'off' : 'on'));
	$node->append_conf('postgresql.conf', 'pg_lsm.max_workers = ' . ($death eq 'worker' || $round % 3 == 0 ? 2 : 0));
	$node->reload;

	my $load = load_start($node, name => "r$round", clients => 6, options => $limits, log => 1,
		# When VACUUM is to die, delete many rows at once, so that VACUUM has segments to drop and a file to truncate.
		scripts => [ [ 10, $insert ], [ 2, $delete ], [ $death eq 'vacuum' ? 1 : 0, $delete_all ],
			[ 2, $abort ], [ 3, $update ], [ $death eq 'vacuum' ? 4 : 1, "VACUUM (TRUNCATE off) t;\n" ],
			[ $death eq 'compact' ? 4 : 1, "SELECT lsm_compact(i) FROM unnest('{t_k,t_sk,t_n}'::regclass[]) i;\n" ],
			$round % 5 == 0 ? [ 1, "REINDEX INDEX t_n;\n" ] : () ]);
	$node->poll_query_until('postgres', 'SELECT sum(n) > 0 FROM commits') or die 'the load did not begin';
	select(undef, undef, undef, $seconds);
	if ($death eq 'immediate')
	{
		$node->stop('immediate');
	}
	elsif ($death eq 'postmaster')
	{
		kill_postmaster($node);
	}
	else
	{
		# All other processes die with it, and the server restarts by itself.
		my $done = kill_process($node, $victims{$death});

		$killed{$death} += $done;
		# There may be no such process at the moment.
		ok($done || kill_process($node, $victims{backend}), "round $round: killed $death");
	}
	load_stop($load);
	if ($victims{$death})
	{
		wait_for_server($node);
	}
	else
	{
		$node->start;
	}
	check_clean($node, "round $round: indexes are right after death of the $death");
	is( $node->safe_psql('postgres', q{
			SELECT string_agg(format('%s: %s rows, should be %s', who, coalesce(have, 0), rows), ', ')
			FROM committed LEFT JOIN (SELECT who, count(*) AS have FROM t GROUP BY who) x USING (who)
			WHERE coalesce(have, 0) <> rows}),
		'', "round $round: each table has exactly the committed rows");
	is(lost_commits($node, $load), '', "round $round: no acknowledged commit is lost");

	# The log has only expected errors: clients deadlock on rows, and the crash ends connections. The workers of a
	# parallel VACUUM may leave before their leader, or start after it has ended.
	my $log = log_since($node, $log_at);
	$log_at = -s $node->logfile;
	is(join("\n", grep { /(ERROR|PANIC|TRAP):? |terminated by signal (?!9:)/ && !/deadlock detected|terminating connection|lost connection to parallel worker|could not attach to per-session DSM segment/ } split /\n/, $log),
		'', "round $round: no errors in the server's log");

	# Vacuum the table after every third round, and empty it after every seventh.
	$node->safe_psql('postgres', 'VACUUM t') if $round % 3 == 0;
	if ($round % 7 == 0)
	{
		$node->safe_psql('postgres', 'TRUNCATE t; UPDATE committed SET rows = 0');
	}
}

cmp_ok($killed{$_} // 0, '>', 0, "processes that do this were killed: $_") foreach $rounds >= @deaths * 2 ? qw(step vacuum compact worker) : ();

# No block is lost.
$node->append_conf('postgresql.conf', 'pg_lsm.max_workers = 0');
$node->reload;
foreach my $index (qw(t_k t_sk t_n t_part))
{
	$node->safe_psql('postgres', "SELECT lsm_compact('$index')");
	$node->safe_psql('postgres', 'VACUUM t');
	is($node->safe_psql('postgres', "SELECT lsm_check('$index', true)"), '', "$index is sound after all crashes");
	is(lost_blocks($node, $index), '', "$index has lost no block");
}

# A crash between CREATE INDEX and the next checkpoint.
$node->safe_psql('postgres', q{
	CREATE TABLE u AS SELECT i AS k, 'u' || i AS s FROM generate_series(1, 5000) i;
	CREATE INDEX u_k ON u USING lsm (k);
	INSERT INTO u SELECT i, 'late' FROM generate_series(1, 100) i;
	CREATE TABLE empty (k int);
	CREATE INDEX empty_k ON empty USING lsm (k);
});
$node->stop('immediate');
$node->start;
check_clean($node, 'indexes made just before a crash are sound');

# wal_level minimal writes no WAL for what a transaction creates. Commit syncs the files instead.
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\nfsync = on\n");
$node->restart;
$node->safe_psql('postgres', q{
	BEGIN;
	CREATE TABLE m (k int, s text COLLATE "C");
	CREATE INDEX m_k ON m USING lsm (k);
	INSERT INTO m SELECT i % 100, 'm' || i FROM generate_series(1, 2000) i;
	CREATE INDEX m_s ON m USING lsm (s, k);
	INSERT INTO m SELECT i % 100, 'm' || i FROM generate_series(1, 1000) i;
	COMMIT;
	INSERT INTO m SELECT i % 100, 'logged' FROM generate_series(1, 200) i;
	BEGIN;
	TRUNCATE u;
	INSERT INTO u SELECT i, 'truncated' FROM generate_series(1, 1000) i;
	COMMIT;
	BEGIN;
	REINDEX INDEX t_k;
	INSERT INTO t SELECT i, i, 'r', i, -2 FROM generate_series(1, 100) i;
	COMMIT;
});
$node->stop('immediate');
$node->start;
check_clean($node, 'indexes are sound after a crash at wal_level minimal');
is($node->safe_psql('postgres', 'SELECT count(*) FROM m'), 3200, 'rows written without WAL survive the crash');

$node->stop;
done_testing();
