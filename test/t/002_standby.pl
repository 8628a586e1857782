# A streaming standby. It answers like the primary while the primary takes a load, merges and vacuums. Redo gives
# exactly the same pages (wal_consistency_checking). Merges and the reuse of blocks cancel no query, whatever its table
# and age, and do not delay replay. A paused scan delays the replay of VACUUM only until its next fetch.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', init => { allows_streaming => 1 }, conf => "
fsync = off
wal_consistency_checking = 'pg_lsm'
hot_standby_feedback = off
max_standby_streaming_delay = '200s'
max_wal_size = 128MB
");
$primary->start;
$primary->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE EXTENSION pg_walinspect;
CREATE TABLE t (k int, f float8, s text COLLATE "C", n numeric, who int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i % 100, i, 's' || i % 10, i, -1 FROM generate_series(1, 500) i;
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_sk ON t USING lsm (s DESC, k) INCLUDE (f);
CREATE INDEX t_n ON t USING lsm (n, who);
});
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
catch_up($primary, $standby);

# On each server, index scans and sequential scans return the same rows.
my @queries = (
	'SELECT * FROM t WHERE k = 7', 'SELECT k FROM t WHERE k BETWEEN 10 AND 40', 'SELECT k, s, f FROM t WHERE s = \'s3\' AND k > 50',
	'SELECT * FROM t WHERE n < 20', 'SELECT n, who FROM t WHERE n > 100', 'SELECT * FROM t WHERE k IN (1, 5, 99) AND s > \'s5\'');

sub compare
{
	my ($name) = @_;

	catch_up($primary, $standby);
	check_clean($standby, "$name: indexes on the standby", no_check => 1);
	check_clean($primary, "$name: indexes on the primary are sound");
	is(join(' ', grep { !same_rows($standby, $_) } @queries), '',
		"$name: index scans and sequential scans on the standby return the same rows");
	return;
}

compare('before the load');
my $wal_start = $primary->lsn('insert');
my $load = load_start($primary, name => 'standby', clients => 3, seconds => 6,
	scripts => [
		[ 6, "\\set k random(0, 100)\nINSERT INTO t SELECT (:k * i) % 100, i, 's' || i % 10, :k + i / 10.0, :client_id FROM generate_series(1, 30) i;\n" ],
		[ 1, "\\set k random(0, 100)\nDELETE FROM t WHERE k BETWEEN :k AND :k + 3 AND who = :client_id;\n" ],
		[ 1, "\\set k random(0, 100)\nBEGIN;\nUPDATE t SET k = k + 1, s = s || 'x' WHERE k = :k AND who = :client_id;\nROLLBACK;\n" ],
		[ 1, "VACUUM (TRUNCATE off) t;\n" ] ]);
# Meanwhile clients query the standby. Its answers must be right at all times. max_standby_streaming_delay leaves enough
# time for each query, so none is canceled and none fails.
my $wrong = '';
for (1 .. 40)
{
	my $query = $queries[ $_ % @queries ];
	my $sorted = "SELECT count(*) || md5(string_agg(q::text, ' ' ORDER BY q::text COLLATE \"C\")) FROM ($query) q";
	my ($ret, $out, $err) = $standby->psql('postgres', "
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SET enable_seqscan = off; $sorted; SET enable_seqscan = on;
		SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $sorted;
		COMMIT");
	my ($by_index, $by_seq) = split /\n/, $out;
	$wrong .= "$query: $err\n" if $ret != 0 || ($by_index // '') ne ($by_seq // 'nothing');
}
unlike(load_stop($load), qr/ERROR|aborted/, 'the load on the primary has no errors');
is($wrong, '', 'during the load, no query on the standby is wrong or canceled');
compare('after the load');
$primary->safe_psql('postgres', 'VACUUM t');
compare('after VACUUM');
$primary->safe_psql('postgres', 'REINDEX TABLE t; TRUNCATE t; INSERT INTO t SELECT i % 100, i, \'s\' || i % 10, i, 0 FROM generate_series(1, 800) i');
compare('after REINDEX and TRUNCATE');

# The WAL since the load began has records of every kind.
flush_wal($primary);
is( $primary->safe_psql('postgres', qq{
		SELECT record_type FROM pg_get_wal_records_info('$wal_start', pg_current_wal_flush_lsn())
		WHERE resource_manager = 'pg_lsm' GROUP BY 1 ORDER BY 1}),
	join("\n", sort qw(INSERT EDIT DELETE GATE_FLIP GATE_DRAIN)), 'WAL has records of every kind');

# A load that only inserts, so that no pruning of the heap can conflict. Merges free blocks and use them again while
# older queries run on the standby. Cursors and whole queries read the loaded table, and another table. There is no
# feedback, and no delay that would hide a conflict. Even so, no query is canceled, and each reads the rows of its
# snapshot.
my $conflicts = "SELECT sum(confl_tablespace + confl_lock + confl_snapshot + confl_bufferpin + confl_deadlock) FROM pg_stat_database_conflicts";
$primary->safe_psql('postgres', q{
	CREATE TABLE r (k int, s text COLLATE "C");
	CREATE INDEX r_k ON r USING lsm (k);
	CREATE INDEX r_s ON r USING lsm (s, k);
	INSERT INTO r SELECT i, 's' || i % 7 FROM generate_series(1, 500) i;
	CREATE TABLE other (k int);
	CREATE INDEX other_k ON other USING lsm (k);
	INSERT INTO other SELECT i FROM generate_series(1, 500) i;
});
$primary->safe_psql('postgres', 'VACUUM r, other');
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 0\nmax_standby_archive_delay = 0");
$standby->reload;
catch_up($primary, $standby);
my $before = $standby->safe_psql('postgres', $conflicts);
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off';
my %old = map { $_ => $standby->background_psql('postgres', on_error_stop => 0) } qw(plain only other);
foreach my $name (sort keys %old)
{
	my $table = $name eq 'other' ? 'other' : 'r';

	$old{$name}->query_safe($by_index . ($name eq 'plain' ? '; SET enable_indexonlyscan = off' : ''));
	$old{$name}->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$old{$name}->query_safe("DECLARE c SCROLL CURSOR FOR SELECT k FROM $table WHERE k > 0 ORDER BY k");
	is($old{$name}->query_safe('FETCH 2 FROM c'), "1\n2", "a cursor is open on the standby: $name");
}
$load = load_start($primary, name => 'inserts', clients => 3, transactions => 150,
	scripts => [ [ 1, "\\set k random(0, 600)\nINSERT INTO r SELECT (:k * i) % 600, 's' || i % 7 FROM generate_series(1, 20) i;\n" ] ]);
my $next = 3;
my $cancelled = '';
foreach my $round (1 .. 12)
{
	foreach my $table (qw(r other))
	{
		my ($ret, $out, $err) = $standby->psql('postgres', "$by_index; BEGIN ISOLATION LEVEL REPEATABLE READ;
			SELECT count(*) FROM $table WHERE k >= 0; SELECT pg_sleep(0.2); SELECT count(*) FROM $table WHERE k >= 0; COMMIT");
		my @counts = grep { /\d/ } split /\n/, $out;

		$cancelled .= $err if $ret != 0 || @counts != 2 || $counts[0] != $counts[1];
	}
	foreach my $name (sort keys %old)
	{
		my $got = join ' ', split /\n/, $old{$name}->query_safe("FETCH 3 FROM c");

		$cancelled .= "$name: $got\n" if $got ne join(' ', $next .. $next + 2);
	}
	$next += 3;
	my ($ret, $out, $err) = $standby->psql('postgres', "SELECT lsm_check('r_k', true), lsm_check('r_s', true)");
	$cancelled .= $err if $ret != 0;
}
unlike(load_stop($load), qr/ERROR|aborted/, 'a load with only inserts has no errors');
is($cancelled, '', 'no query on the standby is wrong or canceled while the primary merges');
# Rewrite all blocks, several times.
$primary->safe_psql('postgres', "INSERT INTO r SELECT i, 'x' FROM generate_series(1, 400) i; SELECT lsm_compact('r_k'), lsm_compact('r_s')") foreach 1 .. 4;
catch_up($primary, $standby);
foreach my $name (sort keys %old)
{
	is(join(' ', split /\n/, $old{$name}->query_safe('FETCH ALL FROM c')), join(' ', $next .. 500), "the old cursor sees the rows of its snapshot: $name");
	is(join(' ', split /\n/, $old{$name}->query_safe('FETCH BACKWARD 3 FROM c')), '500 499 498', "the old cursor reads backward: $name");
}
$primary->safe_psql('postgres', "INSERT INTO r SELECT i, 'x' FROM generate_series(1, 400) i; SELECT lsm_compact('r_k'), lsm_compact('r_s')");
catch_up($primary, $standby);
foreach my $name (sort keys %old)
{
	is(join(' ', split /\n/, $old{$name}->query_safe('FETCH BACKWARD ALL FROM c')), join(' ', reverse 1 .. 497), "the old cursor reads backward to the beginning: $name");
	$old{$name}->query_safe('COMMIT');
	$old{$name}->quit;
}
is($standby->safe_psql('postgres', $conflicts), $before, 'replay of the load conflicts with no query');
unlike(slurp_file($standby->logfile), qr/conflict with recovery[^\n]*\n[^\n]*User (query might have needed to see row|was holding a relation lock)/, 'the log reports no conflict') if $before == 0;
check_clean($standby, 'the standby is sound after the load with only inserts');

# A paused index-only cursor has a snapshot taken after the DELETE. Replay of VACUUM waits for the cursor's next fetch,
# and then continues.
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1");
$standby->reload;
$primary->safe_psql('postgres', q{
	CREATE TABLE g (k int, f text) WITH (autovacuum_enabled = off);
	CREATE INDEX g_k ON g USING lsm (k);
	-- The first page has the rows that stay and are read first. The cursor takes them from the index, without pinning
	-- a heap page.
	ALTER TABLE g ALTER f SET STORAGE plain;
	INSERT INTO g SELECT i, repeat('f', 2660) FROM generate_series(1, 3) i;
	INSERT INTO g SELECT i, repeat('f', 100) FROM generate_series(4, 300) i;
});
$primary->safe_psql('postgres', 'VACUUM g');
$primary->safe_psql('postgres', 'DELETE FROM g WHERE k % 50 <> 0 AND k > 3');
catch_up($primary, $standby);
my $paused = $standby->background_psql('postgres', on_error_stop => 0);
$paused->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
$paused->query_safe('BEGIN');
$paused->query_safe('DECLARE c CURSOR FOR SELECT k FROM g WHERE k > 0 ORDER BY k');
is($paused->query_safe('FETCH 1 FROM c'), '1', 'an index-only cursor is open on the standby');
$primary->safe_psql('postgres', 'VACUUM g');
my $vacuumed = $primary->lsn('insert');
$primary->safe_psql('postgres', q{INSERT INTO g SELECT 1000 + i, 'new' FROM generate_series(1, 300) i});
ok($standby->poll_query_until('postgres', q{SELECT wait_event IN ('BufferPin', 'BufferCleanup') FROM pg_stat_activity WHERE backend_type = 'startup'}),
	'replay waits for the paused cursor');
is($paused->query_safe('FETCH 1 FROM c'), '2', 'the paused cursor continues');
ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$vacuumed'"), "replay continues after the cursor's next fetch");
is(join(' ', split /\n/, $paused->query_safe('FETCH ALL FROM c')), '3 50 100 150 200 250 300', 'the cursor returns no removed row and no new one');
$paused->quit;
catch_up($primary, $standby);
check_clean($standby, 'the standby is sound after the paused cursor', no_check => 1);

# lsm_check and lsm_runs also work on a standby, which cannot write.
is($standby->safe_psql('postgres', q{SELECT lsm_check('t_k', true), (SELECT sum(entries) FROM lsm_runs('t_k'))}),
	'|' . $primary->safe_psql('postgres', 'SELECT count(*) FROM t'), 'lsm_check and lsm_runs work on the standby');

# While lsm_check_all verifies one index, another one is dropped.
SKIP:
{
	skip 'no stop points in this build', 10 if ($standby->psql('postgres', "LOAD 'pg_lsm'; SHOW pg_lsm.debug_stop_at"))[0] != 0;
	$primary->safe_psql('postgres', 'CREATE TABLE gone (k int); CREATE INDEX gone_k ON gone USING lsm (k); INSERT INTO gone SELECT generate_series(1, 300)');
	catch_up($primary, $standby);
	my $holder = $standby->background_psql('postgres');
	my $checker = $standby->background_psql('postgres', on_error_stop => 0);

	$holder->query_safe(q{SELECT pg_advisory_lock(hashtext('check-segment'))});
	$checker->query_safe(q{SET pg_lsm.debug_stop_at = 'check-segment'});
	$checker->query_until(qr/begun/, "\\echo begun\nSELECT 'faults', count(*) FROM lsm_check_all();\n");
	$standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'advisory'});
	$primary->safe_psql('postgres', 'DROP TABLE gone');
	catch_up($primary, $standby);
	$holder->quit;
	like($checker->query(q{SELECT 'end'}), qr/faults\|0/, 'lsm_check_all on a standby skips an index that was dropped meanwhile');
	$checker->quit;

	# A reader has taken a version and has read nothing yet. The primary removes rows, gives their TIDs to new rows,
	# merges, and reuses the blocks. Replay of VACUUM waits only for an index-only scan.
	$primary->safe_psql('postgres', 'CREATE TABLE v (k int, f text) WITH (autovacuum_enabled = off, vacuum_truncate = off); CREATE INDEX v_k ON v USING lsm (k)');
	foreach my $columns ('k, f', 'k')
	{
		$primary->safe_psql('postgres', q{INSERT INTO v SELECT i * 7 % 300 + 1, 'old' FROM generate_series(1, 300) i});
		$primary->safe_psql('postgres', 'VACUUM v');
		$primary->safe_psql('postgres', 'DELETE FROM v WHERE k > 3');
		catch_up($primary, $standby);
		my $expected = $standby->safe_psql('postgres', "SELECT $columns FROM v ORDER BY k");
		my $reader = $standby->background_psql('postgres', on_error_stop => 0);

		$holder = $standby->background_psql('postgres');
		$holder->query_safe(q{SELECT pg_advisory_lock(hashtext('read-version'))});
		$reader->query_safe("$by_index; SET pg_lsm.debug_stop_at = 'read-version'");
		$reader->query_until(qr/begun\n/, "\\echo begun\nSELECT $columns FROM v WHERE k > 0 ORDER BY k;\n");
		ok($standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'advisory'}), "a reader of $columns waits on the standby");
		$primary->safe_psql('postgres', 'VACUUM v');
		$primary->safe_psql('postgres', "INSERT INTO v SELECT i, 'new' FROM generate_series(1001, 1200) i; SELECT lsm_compact('v_k')") foreach 1 .. 3;
		if ($columns eq 'k')
		{
			flush_wal($primary);
			ok($standby->poll_query_until('postgres', q{SELECT wait_event IN ('BufferPin', 'BufferCleanup') FROM pg_stat_activity WHERE backend_type = 'startup'}),
				'replay of VACUUM waits for the index-only scan');
		}
		else
		{
			catch_up($primary, $standby);
			is($standby->safe_psql('postgres', 'SELECT count(*) FROM v WHERE k > 1000'), 600, 'replay of VACUUM and merges does not wait for the plain scan');
		}
		$holder->quit;
		is($reader->query(''), $expected, "the reader of $columns returns no removed row and no new one");
		$reader->quit;
		catch_up($primary, $standby);
		ok(same_rows($standby, 'SELECT k, f FROM v WHERE k > 0'), "the standby has replayed all after the reader of $columns");
	}
	is($standby->safe_psql('postgres', q{SELECT lsm_check('v_k', true)}), '', 'the index is sound on the standby');
}

# The standby is promoted in the middle of a load, with unfinished merges.
$load = load_start($primary, name => 'promote', clients => 3, seconds => 5,
	scripts => [ [ 1, "\\set k random(0, 100)\nINSERT INTO t SELECT (:k * i) % 100, i, 's' || i % 10, :k + i / 10.0, :client_id FROM generate_series(1, 30) i;\n" ] ]);
ok($standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM lsm_runs('t_k') WHERE state = 'merging' AND segments > 0}),
	'a merge is in progress when the standby is promoted');
$standby->promote;
load_stop($load);
check_clean($standby, 'indexes are sound after promotion');
$standby->safe_psql('postgres', q{INSERT INTO t SELECT i % 100, i, 's' || i % 10, i, 9 FROM generate_series(1, 500) i; DELETE FROM t WHERE k < 30});
$standby->safe_psql('postgres', 'VACUUM t');
check_clean($standby, 'indexes are sound after the promoted standby has written');

unlike(slurp_file($standby->logfile), qr/inconsistent page found|PANIC|TRAP/, 'redo made the same pages');
$standby->stop;
$primary->stop;
done_testing();
