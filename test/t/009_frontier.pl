# Large merges that replace their inputs part by part: the space that they take,
# crashes between parts, and what a standby reads meanwhile.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_node('frontier', init => { allows_streaming => 1 }, conf => "
fsync = off
pg_lsm.max_workers = 1
pg_lsm.idle_delay = '-1'
pg_lsm.buffer_entries = 0
pg_lsm.page_entries = 0
pg_lsm.merge_fanout = 16
pg_lsm.step_leaves = 16
pg_lsm.batch_min_entries = 48
pg_lsm.batch_entries = 0
max_prepared_transactions = 10
");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');

sub set
{
	my (%settings) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $_ = '$settings{$_}'") foreach keys %settings;
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	return;
}

# 1. An idle merge of a whole index, in parts and at once.  By how much does the
# file grow?  The index is loaded in pieces, so nothing of it is free before.
sub growth
{
	my ($table, $part_size) = @_;

	$node->safe_psql('postgres', qq{
		CREATE TABLE $table (k int) WITH (autovacuum_enabled = off);
		INSERT INTO $table SELECT hashint4(i) FROM generate_series(1, 1000000) i;
		CREATE INDEX ${table}_k ON $table USING lsm (k) WITH (merge_fanout = 32);
		INSERT INTO $table SELECT hashint4(i) FROM generate_series(1000001, 1500000) i;
	});
	my $before = $node->safe_psql('postgres', "SELECT pg_relation_size('${table}_k')");
	set('pg_lsm.part_size' => $part_size, 'pg_lsm.idle_delay' => '50ms');
	$node->safe_psql('postgres', "INSERT INTO $table VALUES (1)");
	ok($node->poll_query_until('postgres', "SELECT count(*) <= 2 FROM lsm_runs('${table}_k')"), "$table is merged");
	set('pg_lsm.idle_delay' => '-1');
	return ($node->safe_psql('postgres', "SELECT pg_relation_size('${table}_k')") - $before) / $before;
}

my $at_once = growth('whole', '1GB');
my $in_parts = growth('parts', '512kB');
note "the file grows by $at_once, in parts by $in_parts";
cmp_ok($at_once, '>', 0.9, 'a merge of all at once needs the space of all');
# About 60 of its inputs are too small to be cut.
cmp_ok($in_parts, '<', 0.6, 'in parts, that of some parts and of small inputs');
is($node->safe_psql('postgres', "SELECT lsm_check('parts_k', true)"), '', 'merged in parts');
$node->safe_psql('postgres', 'DROP TABLE whole, parts');

# 2. A standby reads while the frontier moves, with snapshots that are older.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = -1");
$standby->start;

# The writers merge, slowly: so there are parts at all times.
set('pg_lsm.part_size' => '64kB', 'pg_lsm.max_workers' => 0, 'pg_lsm.merge_fanout' => 4,
	'pg_lsm.foreground_blocks' => 4, 'pg_lsm.page_entries' => 20, 'pg_lsm.step_leaves' => 4);
$node->safe_psql('postgres', q{
	CREATE TABLE t (k int, s text COLLATE "C");
	CREATE INDEX t_k ON t USING lsm (k);
	CREATE INDEX t_s ON t USING lsm (s, k DESC);
});
my @write = (scripts => [
		[ 5, 'INSERT INTO t SELECT (random() * 1000)::int, \'s\' || i % 50 FROM generate_series(1, 100) i;' ],
		[ 1, "\\set k random(0, 1000)\nDELETE FROM t WHERE k = :k;" ] ]);
my $parts = 0;
my $wrong = '';
foreach my $round (1 .. 2)
{
	my $load = load_start($node, name => "load$round", clients => 2, transactions => 50, @write);
	foreach (1 .. 4)
	{
		$parts += $node->safe_psql('postgres', q{SELECT count(*) FROM lsm_runs('t_k') WHERE state = 'part'});
		foreach my $query ('SELECT k FROM t WHERE k BETWEEN 200 AND 700', q{SELECT s, k FROM t WHERE s > 's2'})
		{
			# One snapshot for both: all of it is in one transaction.
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
	unlike(load_stop($load), qr/ERROR|aborted/, "load $round");
}
cmp_ok($parts, '>', 0, 'there were parts');
is($wrong, '', 'a standby finds all rows, once');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
check_clean($standby, 'the standby at last');
check_clean($node, 'and the primary');
$standby->stop;

# 3. Crashes while parts are there.
my $found = 0;
foreach my $round (1 .. 4)
{
	my $load = load_start($node, name => "crash$round", clients => 2, transactions => 2000, @write);
	foreach (1 .. 200)
	{
		my ($ret, $out) = $node->psql('postgres', q{SELECT count(*) FROM unnest('{t_k,t_s}'::regclass[]) i, lsm_runs(i) WHERE state = 'part'});
		last if $out ne '' && $out > 0 && ++$found;
		sleep 0.01;
	}
	kill_postmaster($node);
	load_stop($load);
	$node->start;
	check_clean($node, "after crash $round");
}
cmp_ok($found, '>', 1, 'a part was there when the server was killed');
set('pg_lsm.max_workers' => 1, 'pg_lsm.idle_delay' => '20ms');
$node->safe_psql('postgres', 'VACUUM t');
ok($node->poll_query_until('postgres', q{SELECT count(*) <= 8 FROM lsm_runs('t_k')}), 'merges go on');
$node->safe_psql('postgres', q{SELECT lsm_compact('t_k'), lsm_compact('t_s')});
check_clean($node, 'at the end');

# 4. VACUUM while frontiers move: leaves that it goes on from may be gone.
set('pg_lsm.max_workers' => 0, 'pg_lsm.part_size' => 6, 'pg_lsm.merge_fanout' => 3, 'pg_lsm.foreground_blocks' => 8,
	'pg_lsm.page_entries' => 7, 'pg_lsm.step_leaves' => 3, 'pg_lsm.batch_min_entries' => 4, 'pg_lsm.batch_entries' => 50);
foreach my $round (1 .. 4)
{
	$node->safe_psql('postgres', 'TRUNCATE t');
	load_stop(load_start($node, name => "vacuum$round", clients => 3, seconds => 4, scripts => [
		[ 6, "\\set k random(0, 100)\nINSERT INTO t SELECT (:k * i) % 100, 's' || i % 10 FROM generate_series(1, 30) i;" ],
		[ 1, "\\set k random(0, 100)\nDELETE FROM t WHERE k BETWEEN :k AND :k + 3;" ],
		[ 1, 'VACUUM t;' ] ]));
	check_clean($node, "VACUUM beside merges $round");
}
done_testing();
