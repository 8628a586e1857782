# Prefetching index-only scans in both modes and over both access methods, and plain index-only scans that take simple
# steps (scan/index_only.c). Meanwhile rows move and VACUUM runs all the time. Each scan sees exactly the rows of its
# snapshot.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 4000;
my $seconds = 8;
my $node = new_node('only', conf => q{
	fsync = off
	pg_lsm.max_workers = 1
	enable_seqscan = off
	enable_bitmapscan = off
	enable_sort = off
	max_parallel_workers_per_gather = 0
	pg_lsm.prefetch_depth = 16
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_lsm;
	CREATE TABLE l (k int, v int, pad text);
	ALTER TABLE l ALTER pad SET STORAGE plain;
	CREATE TABLE b (LIKE l INCLUDING STORAGE);
	CREATE TABLE steps (LIKE l INCLUDING STORAGE);
	CREATE INDEX l_k ON l USING lsm (k) INCLUDE (v);
	CREATE INDEX b_k ON b (k) INCLUDE (v);
	INSERT INTO l SELECT i, 0, repeat('x', 300) FROM generate_series(1, $rows) i;
	INSERT INTO b SELECT * FROM l;
	-- Simple steps need key columns of fixed length, and no others.
	CREATE INDEX steps_k ON steps USING lsm (k, v);
	INSERT INTO steps SELECT * FROM l;
	-- The sums of the values and of the keys never change.  The function reads slowly, so that the scan holds TIDs
	-- while rows move.
	CREATE FUNCTION check_rows(query text) RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE
		c refcursor;
		r record;
		rows int := 0;
		values int := 0;
		keys int := 0;
	BEGIN
		OPEN c NO SCROLL FOR EXECUTE query;
		LOOP
			FETCH c INTO r;
			EXIT WHEN NOT FOUND;
			rows := rows + 1;
			values := values + r.v;
			keys := keys + r.k;
			IF rows % 500 = 0 THEN
				PERFORM pg_sleep(0.01);
			END IF;
		END LOOP;
		CLOSE c;
		RETURN format('%s rows, sum %s, keys %s', rows, values, keys);
	END \$\$;
	CREATE FUNCTION slow(k int) RETURNS bool LANGUAGE plpgsql AS \$\$
	BEGIN
		IF k % 500 = 0 THEN
			PERFORM pg_sleep(0.01);
		END IF;
		RETURN true;
	END \$\$;
});
$node->safe_psql('postgres', 'VACUUM ANALYZE');

my %query = (
	'in index order' => 'SELECT check_rows($$SELECT k, v FROM %s WHERE k > 0 ORDER BY k$$)',
	'by page' => 'SELECT format($$%%s rows, sum %%s, keys %%s$$, count(*), sum(v), sum(k)) FROM %s WHERE k > 0 AND slow(k)');
my @tables = ('l', 'b', 'steps');
my %settings = ((map { $_ => 'SET pg_lsm.debug_prefetch_scan = on;' } 'l', 'b'),
	steps => 'SET pg_lsm.enable_prefetch_scan = off;');
my $want = sprintf('%d rows, sum 0, keys %d', $rows, $rows * ($rows + 1) / 2);

foreach my $table ('l', 'b')
{
	foreach my $plan ('SELECT k, v FROM %s WHERE k > 0 ORDER BY k', 'SELECT count(*), sum(v), sum(k) FROM %s WHERE k > 0')
	{
		my $mode = $plan =~ /ORDER/ ? 'in index order' : 'by page';
		like($node->safe_psql('postgres', "$settings{$table} EXPLAIN (COSTS OFF) " . sprintf($plan, $table)),
			qr/Mode: $mode.*Index Only Scan/s, "$table, $mode: the plan is a prefetching index-only scan");
	}
}
like($node->safe_psql('postgres', "$settings{steps} EXPLAIN (COSTS OFF) SELECT k, v FROM steps WHERE k > 0 ORDER BY k"),
	qr/^Index Only Scan using steps_k/, 'steps: the plan is a plain index-only scan');

my %script = (
	move => "\\set a random(1, $rows)
		\\set b 1 + (:a + random(0, $rows - 2)) % $rows
		UPDATE TABLE SET v = v + CASE k WHEN :a THEN 7 ELSE -7 END WHERE k IN (:a, :b);
		WITH gone AS (DELETE FROM TABLE WHERE k = :b RETURNING *) INSERT INTO TABLE SELECT * FROM gone;
		\\sleep 1 ms",
	vacuum => "VACUUM TABLE;\n\\sleep 20 ms");
my @clients;
foreach my $table (@tables)
{
	foreach my $what (sort keys %script)
	{
		my $file = $node->basedir . "/$table-$what.sql";
		append_to_file($file, $script{$what} =~ s/TABLE/$table/gr);
		push @clients, IPC::Run::start([ 'pgbench', '-n', '-c', 1, '-T', $seconds, '-f', $file,
				'-h', $node->host, '-p', $node->port, 'postgres' ], '>', \my $out, '2>', \my $err);
	}
}
my %wrong;
my %reads;
my $end = time + $seconds - 1;
while (time < $end)
{
	foreach my $table (@tables)
	{
		foreach my $mode (sort keys %query)
		{
			my $got = $node->safe_psql('postgres', $settings{$table} . sprintf($query{$mode}, $table));
			$reads{"$table, $mode"}++;
			$wrong{"$table, $mode"} = $got if $got ne $want;
		}
	}
}
ok($_->finish, 'a client finished without errors') foreach @clients;
is_deeply(\%wrong, {}, 'each scan saw the rows of its snapshot');
cmp_ok($reads{$_}, '>', 2, "$_: the scan ran several times") foreach sort keys %reads;
is(problems($node), '', 'all indexes are sound');

done_testing();
