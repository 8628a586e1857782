# With direct I/O, the kernel does not keep prefetched pages. If the server reads asynchronously, the prefetching scan
# then takes its pages from a read stream. Otherwise the planner does not use the prefetching scan.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Shared buffers are smaller than the tables, and so small that a scan cannot pin as many pages as it wants.
my $node = new_node('direct', conf => q{
	fsync = off
	shared_buffers = 2MB
	debug_io_direct = 'data'
	enable_seqscan = off
	enable_sort = off
	enable_hashagg = off
	max_parallel_workers_per_gather = 0
	pg_lsm.enable_prefetch_scan = 'all'
});
plan skip_all => 'direct I/O came with PostgreSQL 16' if $node->pg_version < 16;
plan skip_all => 'this system has no direct I/O' unless $node->start(fail_ok => 1);

$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_lsm;
	CREATE TABLE b (id int, k int, n int, pad text);
	ALTER TABLE b ALTER pad SET STORAGE plain;
	INSERT INTO b SELECT i, hashint4(i) / 1000, i % 10, repeat('x', 500) FROM generate_series(1, 10000) i;
	UPDATE b SET n = n + 100 WHERE id % 7 = 0;
	DELETE FROM b WHERE id % 17 = 0;
	CREATE TABLE l AS TABLE b;
	CREATE INDEX b_k ON b (k) INCLUDE (id);
	CREATE INDEX l_k ON l USING lsm (k) INCLUDE (id);
	VACUUM ANALYZE b, l;
	-- So that only some of the pages are all-visible.
	UPDATE b SET n = n + 1 WHERE id % 50 = 0;
	UPDATE l SET n = n + 1 WHERE id % 50 = 0;
	CREATE FUNCTION fail_at(k int, at int) RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		IF k >= at THEN
			RAISE 'far enough';
		END IF;
		RETURN true;
	END $$;
	CREATE FUNCTION fails(query text) RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE query;
		RETURN false;
	EXCEPTION WHEN raise_exception THEN
		RETURN true;
	END $$});

sub plan_of
{
	my ($query, $settings) = @_;
	return $node->safe_psql('postgres', ($settings // '') . "SET pg_lsm.prefetch_depth = 16; EXPLAIN (ANALYZE) $query");
}

my $in_order = 'SELECT * FROM b WHERE k > 0 ORDER BY k';
if ($node->pg_version < 18)
{
	unlike(plan_of($in_order, 'SET pg_lsm.debug_prefetch_scan = on;'), qr/Prefetch/, 'no prefetching if streams would wait for each page');
	done_testing();
	exit;
}

# Each query aggregates its rows into one value. If the query is ordered, the value depends on the order.
my %query = (
	'in order' => [ 'in index order', q{SELECT md5(string_agg(s::text, ',')) FROM (SELECT * FROM t WHERE k > 0 ORDER BY k OFFSET 0) s} ],
	'backward' => [ 'in index order', q{SELECT md5(string_agg(s::text, ',')) FROM (SELECT * FROM t ORDER BY k DESC OFFSET 0) s} ],
	'limit' => [ 'in index order', q{SELECT md5(string_agg(s::text, ',')) FROM (SELECT * FROM t WHERE n > 5 ORDER BY k LIMIT 300) s} ],
	'rescans in order' => [ 'in index order', q{SELECT md5(string_agg(s::text, ',')) FROM generate_series(-2000000, 2000000, 100000) o (k),
		LATERAL (SELECT * FROM t WHERE t.k > o.k AND n > 0 ORDER BY t.k LIMIT 40) s} ],
	'index only in order' => [ 'in index order', q{SELECT md5(string_agg(s::text, ',')) FROM (SELECT k, id FROM t WHERE k < 1000000 ORDER BY k OFFSET 0) s} ],
	'by page' => [ 'by page', q{SELECT sum(hashtext(t::text)) FROM t WHERE k > 0} ],
	'few rows' => [ 'by page', q{SELECT sum(hashtext(t::text)) FROM t WHERE k BETWEEN 0 AND 3000} ],
	'rescans by page' => [ 'by page', q{SELECT sum(hashtext(s::text)) FROM generate_series(-2000000, 2000000, 400000) o (k),
		LATERAL (SELECT * FROM t WHERE t.k BETWEEN o.k AND o.k + 300000 AND n > 0) s} ],
	'index only by page' => [ 'by page', q{SELECT sum(hashint4(id)) FROM t WHERE k BETWEEN -1000000 AND 1000000} ]);

my %want;
foreach my $method (qw(worker io_uring))
{
	$node->append_conf('postgresql.conf', "io_method = $method\nshared_buffers = 2MB");
	$node->stop;
  SKIP:
	{
		# Not every build of the server and not every kernel has this I/O method.
		skip "this server has no $method", 1 unless $node->start(fail_ok => 1);
		my $log = -s $node->logfile;

		foreach my $table (qw(b l))
		{
			foreach my $name (sort keys %query)
			{
				my ($mode, $text) = @{ $query{$name} };
				my $query = $text =~ s/\bFROM t\b/FROM $table t/gr;
				my $want = $want{"$table $name"} //= $node->safe_psql('postgres', "SET pg_lsm.enable_prefetch_scan = off; $query");

				foreach my $forced (qw(off on))
				{
					my $settings = "SET enable_bitmapscan = off; SET pg_lsm.debug_prefetch_scan = $forced; SET pg_lsm.prefetch_depth = 16; SET work_mem = '64kB';";

					is($node->safe_psql('postgres', "$settings $query"), $want, "$method, $table, forced $forced, $name: the rows are the same");
					# Unless prefetching is forced, the planner may choose another plan.
					like(plan_of($query, $settings), qr/Mode: $mode/, "$method, $table, $name: $mode") if $forced eq 'on';
				}
			}

			my $parallel = "SELECT sum(hashtext(t::text)) FROM $table t WHERE k > 0";
			my $settings = q{SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
				SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; SET enable_bitmapscan = off;};
			is($node->safe_psql('postgres', "$settings SET pg_lsm.debug_prefetch_scan = on; $parallel"),
				$node->safe_psql('postgres', "SET pg_lsm.enable_prefetch_scan = off; $parallel"), "$method, $table, parallel: the rows are the same");

			# Cursors: one pauses in a subtransaction and changes direction, one outlives its transaction, one serves
			# WHERE CURRENT OF. Errors while reads are in progress. A temporary table.
			my $cursors = qq{SET enable_bitmapscan = off;
				BEGIN;
				DECLARE c SCROLL CURSOR FOR SELECT id FROM $table WHERE k > 100 ORDER BY k;
				FETCH 20 FROM c;
				SAVEPOINT s;
				FETCH 200 FROM c;
				SELECT fails('SELECT count(*) FROM $table WHERE k > 0 AND fail_at(k, 1000)');
				SELECT fails('SELECT count(*) FROM (SELECT * FROM $table WHERE k > 0 AND fail_at(k, 1000) ORDER BY k) s');
				FETCH 100 FROM c;
				ROLLBACK TO s;
				FETCH 100 FROM c;
				FETCH BACKWARD 200 FROM c;
				FETCH 50 FROM c;
				DECLARE h CURSOR WITH HOLD FOR SELECT id FROM $table WHERE k > 200 ORDER BY k;
				FETCH 30 FROM h;
				DECLARE u CURSOR FOR SELECT id FROM $table WHERE k > 300 ORDER BY k;
				FETCH 30 FROM u;
				UPDATE $table SET n = n WHERE CURRENT OF u;
				FETCH 30 FROM u;
				COMMIT;
				FETCH 30 FROM h;
				CLOSE h;
				CREATE TEMP TABLE own AS TABLE $table;
				CREATE INDEX ON own (k);
				SELECT md5(string_agg(s::text, ',')) FROM (SELECT id, k FROM own WHERE k > 0 ORDER BY k, id OFFSET 0) s};
			is($node->safe_psql('postgres', "SET pg_lsm.debug_prefetch_scan = on; $cursors"),
				$node->safe_psql('postgres', "SET pg_lsm.enable_prefetch_scan = off; $cursors"), "$method, $table, cursors: the rows are the same");
		}
		unlike(slurp_file($node->logfile, $log), qr/WARNING|PANIC|was not closed|leak/, "$method: the scans leave nothing pinned");

		# Prefetching is not forced here, but the pages must be read, and there are enough buffers to pin them.
		$node->append_conf('postgresql.conf', 'shared_buffers = 16MB');
		$node->restart;
		my $plan = plan_of($in_order);
		my ($reached, $prefetched) = $plan =~ /Mode: in index order.*Depth Reached: (\d+).*Pages Prefetched: (\d+)/s ? ($1, $2) : (0, 0);
		cmp_ok($reached, '>', 3, "$method: the scan looks several pages ahead") or diag $plan;
		cmp_ok($prefetched, '>', 300, "$method: the scan prefetches pages") or diag $plan;
	}
	$node->stop('fast', fail_ok => 1);
}

# With this I/O method reads are synchronous.
$node->append_conf('postgresql.conf', 'io_method = sync');
$node->start;
unlike(plan_of($in_order, 'SET pg_lsm.debug_prefetch_scan = on;'), qr/Prefetch/, 'sync: no prefetching');

done_testing();
