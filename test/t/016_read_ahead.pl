# Scans prefetch index pages that are not in memory: those that a seek needs in several runs, and the next leaves of a
# backward scan.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# The test cannot empty the kernel's cache, so it makes the server assume that reads are slow.
my $node = new_node('ahead', conf => qq{
	fsync = off
	autovacuum = off
	pg_lsm.max_workers = 0
	pg_lsm.debug_prefetch_scan = on
	effective_io_concurrency = 16
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_lsm;
	CREATE TABLE t (k int, b int);
	CREATE INDEX t_k ON t USING lsm (k);
	DO $$ BEGIN
		FOR b IN 1 .. 12 LOOP
			INSERT INTO t SELECT hashint4(b * 10000 + i) / 1000, b FROM generate_series(1, 6000) i;
			COMMIT;
		END LOOP;
	END $$;
	SET pg_lsm.debug_page_entries = 50;
	SET pg_lsm.debug_segment_size = 0;
	SET pg_lsm.debug_batch_entries = 0;
	SET pg_lsm.debug_foreground_blocks = 10000;
	CREATE TABLE p (device int, ts int);
	CREATE INDEX p_dt ON p USING lsm (device, ts) WITH (merge_fanout = 8);
	DO $$ BEGIN
		FOR b IN 1 .. 56 LOOP
			INSERT INTO p SELECT i % 1000, b * 10000 + i FROM generate_series(1, 2000) i;
			COMMIT;
		END LOOP;
	END $$;
	VACUUM ANALYZE t, p});

my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0;';
my %query = (
	'forward' => 'SELECT k FROM t WHERE k > 0 ORDER BY k LIMIT 10',
	'backward' => 'SELECT count(*) FROM (SELECT k FROM t WHERE k < 1000000 ORDER BY k DESC OFFSET 0) s',
	'key' => 'SELECT count(*) FROM t WHERE k = (SELECT max(k) FROM t)',
	'prefix' => 'SELECT ts FROM p WHERE device = 500 ORDER BY ts DESC LIMIT 10',
	'array' => 'SELECT count(*) FROM t WHERE k = ANY (ARRAY(SELECT generate_series(1, 2000000, 5000)))');

sub rows
{
	my ($what) = @_;
	return $node->safe_psql('postgres', "$settings $query{$what}");
}

# Shared buffers are empty and all counters 0 afterwards.
sub start_over
{
	$node->restart;
	$node->safe_psql('postgres', 'SELECT lsm_stat_reset()');
	return;
}

my $prefetched = 'SELECT sum(pages_prefetched) FROM pg_stat_lsm_indexes';

# Returns a query's result and the number of prefetched pages.
sub asked
{
	my ($what) = @_;
	start_over();
	my @lines = split /\n/, $node->safe_psql('postgres', "$settings $query{$what}; $prefetched");
	my $asked = pop(@lines);
	return (join("\n", @lines), $asked);
}

# Runs a query when shared buffers have only the index pages that the planner reads. Returns how much of the indexes the
# query read in, by bytes_loaded and by PostgreSQL's count, and bytes_loaded of the same query again.
sub loaded
{
	my ($what) = @_;
	my $counts = q{SELECT pg_stat_force_next_flush();
		SELECT 'counts', l.loaded / current_setting('block_size')::int, i.missed
		FROM (SELECT sum(bytes_loaded) AS loaded FROM pg_stat_lsm_indexes) l,
			(SELECT sum(idx_blks_read) AS missed FROM pg_statio_user_indexes WHERE relname IN ('t', 'p')) i};
	start_over();
	my @counts = map { [ split /\|/ ] } grep { /^counts/ } split /\n/,
		$node->safe_psql('postgres', "$settings EXPLAIN $query{$what}; $counts; $query{$what}; $counts; $query{$what}; $counts");
	return ($counts[1][1] - $counts[0][1], $counts[1][2] - $counts[0][2], $counts[2][1] - $counts[1][1]);
}

cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM lsm_runs('t_k')"), '>', 5, 'the index has several runs');
my %before = map { $_ => rows($_) } keys %query;
foreach my $what (sort keys %query)
{
	my ($rows, $asked) = asked($what);
	is($rows, $before{$what}, "$what: the rows are the same");
	cmp_ok($asked, '>', 0, "$what: the scan prefetches pages");
	start_over();
	my $plan = $node->safe_psql('postgres', "$settings EXPLAIN $query{$what}; $prefetched");
	like($plan, qr/\n0$/, "$what: the planner prefetches none");
	my ($loaded, $missed, $again) = loaded($what);
	cmp_ok($loaded, '>', 0, "$what: the scan reads pages that were not in shared buffers");
	is($loaded, $missed, "$what: bytes_loaded counts the pages that were read");
	is($again, 0, "$what: bytes_loaded does not count pages that are in shared buffers") if $what eq 'forward';
}
# Filters may say that many runs have the prefix. Then the scan prefetches the leaves as well, not only the filter
# pages.
my $runs = $node->safe_psql('postgres', "SELECT count(*) FROM lsm_runs('p_dt')");
my (undef, $prefix_asked) = asked('prefix');
cmp_ok($prefix_asked, '>', 1.5 * $runs, 'prefix: a lookup prefetches a filter page and a leaf of each run');
my $once = $node->safe_psql('postgres', "$settings $query{forward}; $prefetched");
is($node->safe_psql('postgres', "$settings $query{forward}; $prefetched"), $once,
	'a scan prefetches no page that is in shared buffers');

$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', q{SELECT lsm_compact('t_k')});
my ($rows, $asked) = asked('backward');
is($rows, $before{backward}, 'backward in a single run: the rows are the same');
cmp_ok($asked, '>', 10, 'backward in a single run: the scan prefetches the next leaves');

# INSERT ... ON CONFLICT of many rows prefetches the leaves and the table pages that it needs.
$node->safe_psql('postgres', q{
	CREATE TABLE c (k bigint PRIMARY KEY WITH (lsm), f char(200));
	INSERT INTO c SELECT hashint8extended(i, 1), 'x' FROM generate_series(1, 40000) i;
	INSERT INTO c SELECT hashint8extended(i, 1), 'x' FROM generate_series(40001, 60000) i});
my $conflicts = q{INSERT INTO c SELECT hashint8extended(i * 100, 1), 'y' FROM generate_series(1, 900) i ON CONFLICT DO NOTHING};
sub pages_ahead
{
	return $node->safe_psql('postgres', q{SELECT sum(pages_prefetched) FROM pg_stat_lsm_indexes WHERE relname = 'c'});
}
start_over();
my $ahead = pages_ahead();
$node->safe_psql('postgres', $conflicts);
is($node->safe_psql('postgres', q{SELECT count(*), count(DISTINCT k) FROM c}), '60300|60300', 'ON CONFLICT: each new row was inserted once');
cmp_ok(pages_ahead() - $ahead, '>', 30, 'ON CONFLICT: the statement prefetches leaves');
check_clean($node, 'indexes are sound after ON CONFLICT of many rows');

# A row on an all-visible page is known to be a conflict without reading its page.
sub table_reads
{
	return $node->safe_psql('postgres', q{SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 'c'});
}
# Returns how many table pages a statement reads when shared buffers are empty.
sub reads_of
{
	my ($statement) = @_;

	start_over();
	my $before = table_reads();
	$node->safe_psql('postgres', $statement);
	return table_reads() - $before;
}
my $all_there = q{INSERT INTO c SELECT hashint8extended(i * 50, 1), 'z' FROM generate_series(1, 1200) i ON CONFLICT DO NOTHING};
# In 19 and later, the queries above have marked some of the pages all-visible.
cmp_ok(reads_of($all_there), '>', 300, 'ON CONFLICT: the statement reads conflicting rows');
$node->safe_psql('postgres', 'VACUUM c');
cmp_ok(reads_of($all_there), '<', 10, 'ON CONFLICT: after VACUUM, the statement does not read conflicting rows');
is($node->safe_psql('postgres', q{SELECT count(*), count(*) FILTER (WHERE f = 'z') FROM c}), '60300|0', 'ON CONFLICT: no row was added');

# A typical table of an application: each row takes a number from a sequence, and another column has the key that may
# exist.
$node->safe_psql('postgres', q{
	DROP TABLE c;
	CREATE TABLE c (id bigserial PRIMARY KEY WITH (lsm), k bigint UNIQUE WITH (lsm), at timestamptz DEFAULT clock_timestamp());
	INSERT INTO c (k) SELECT hashint8extended(i, 1) FROM generate_series(1, 60000) i});
my $numbered = q{INSERT INTO c (k) SELECT hashint8extended(i * 50, 1) FROM generate_series(1, 1200) i ON CONFLICT DO NOTHING};
$node->safe_psql('postgres', 'VACUUM c');
cmp_ok(reads_of($numbered), '<', 10, 'ON CONFLICT: with a sequence, the statement does not read conflicting rows');
is($node->safe_psql('postgres', q{SELECT count(*), nextval('c_id_seq') FROM c}), '60000|61201', 'ON CONFLICT: each row took a number from the sequence');

# EXPLAIN reports pages that are read again. This happens in index order if the table is larger than shared buffers.
$node->safe_psql('postgres', q{
	CREATE TABLE w (k int, f char(400));
	INSERT INTO w SELECT hashint4(i), 'x' FROM generate_series(1, 60000) i;
	CREATE INDEX w_k ON w USING lsm (k);
	VACUUM ANALYZE w});
sub read_again
{
	my ($query) = @_;
	my $plan = $node->safe_psql('postgres', "$settings SET enable_sort = off; EXPLAIN (ANALYZE) $query");

	return $plan =~ /Mode: (in index order|by page).*Pages Read Again: (\d+)/s ? ($1, $2) : ($plan, -1);
}
my ($mode, $again) = read_again('SELECT * FROM w ORDER BY k');
is($mode, 'in index order', 'EXPLAIN shows a scan in index order');
cmp_ok($again, '>', 10000, 'a scan in index order reads many pages again');
($mode, $again) = read_again('SELECT * FROM w WHERE k > -2147483648');
is($mode, 'by page', 'EXPLAIN shows a scan by page');
cmp_ok($again, '<', 1000, 'a scan by page reads few pages again, in its first rounds');

foreach my $one (0, 1)
{
	$node->append_conf('postgresql.conf', "effective_io_concurrency = $one");
	($rows, $asked) = asked('backward');
	is($asked, 0, "no prefetching if only one read may be in flight, effective_io_concurrency = $one");
}

done_testing();
