# Index-only scans of a table whose visibility map has several pages. Entries of both parts of the table alternate. The
# scans return the right rows, whatever is all-visible, and do not read the map again for each row.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use JSON::PP;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# More table pages than one page of the map covers.
my $pages = 33500;
my $node = start_new_node('map', conf => $full . q{
	enable_seqscan = off
	enable_bitmapscan = off
	enable_sort = off
	max_parallel_workers_per_gather = 0
	pg_lsm.enable_prefetch_scan = off
});
my $insert = "INSERT INTO t SELECT hashint4(i), i FROM generate_series(%d, %d) i;";
$node->safe_psql('postgres', "
	CREATE TABLE t (k int, v int);
	CREATE INDEX t_lsm ON t USING lsm (k, v);
	" . sprintf($insert, 1, 5000));

# The pages in between are never written; they are a hole in the file.
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t')");
$node->safe_psql('postgres', 'VACUUM t');
$node->stop;
truncate($file, $pages * 8192) or die "could not extend $file: $!";
$node->start;
$node->safe_psql('postgres', sprintf($insert, 5001, 10000) . '
	CREATE INDEX t_btree ON t (k, v)');
$node->safe_psql('postgres', 'VACUUM ANALYZE t');
is($node->safe_psql('postgres', "SELECT pg_relation_size('t', 'vm') / current_setting('block_size')::int"),
	2, 'the visibility map has two pages');

# The result of a statement while this is the only index.
sub with_only
{
	my ($index, $sql) = @_;
	my $other = $index eq 't_lsm' ? 't_btree' : 't_lsm';

	return $node->safe_psql('postgres', "BEGIN; DROP INDEX $other; $sql; ROLLBACK");
}

sub index_only
{
	my ($index, $query) = @_;
	my $plan = decode_json(with_only($index,
		"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) $query"))->[0]{Plan};

	$plan = $plan->{Plans}[0] while $plan->{Plans};
	is($plan->{'Node Type'} . ' ' . $plan->{'Index Name'}, "Index Only Scan $index", "$index: $query");
	return $plan;
}

sub same
{
	my ($when) = @_;
	my %rows;

	# A cursor that changes direction repeatedly, within a group of rows and beyond.
	my $cursor = 'DECLARE c SCROLL CURSOR FOR SELECT k, v FROM t ORDER BY k, v';
	$cursor .= '; FETCH ' . ($_ % 2 ? "FORWARD $_" : 'BACKWARD ' . ($_ - 5)) . ' FROM c' foreach 1 .. 150;
	foreach my $query ('SELECT k, v FROM t ORDER BY k, v', 'SELECT k, v FROM t ORDER BY k DESC, v DESC',
		'SELECT k, v FROM t WHERE k > 0 ORDER BY k, v LIMIT 200',
		'SELECT k, v FROM t WHERE k < 0 AND v % 3 = 1 ORDER BY k, v', $cursor)
	{
		$rows{$_} = with_only($_, $query) foreach qw(t_lsm t_btree);
		ok($rows{t_lsm} eq $rows{t_btree} && length $rows{t_lsm} > 0, "$when, the same rows: " . substr($query, 0, 60));
	}
}

my $all = 'SELECT k, v FROM t ORDER BY k, v';
my %plan = map { $_ => index_only($_, $all) } qw(t_lsm t_btree);
is($plan{$_}{'Heap Fetches'}, 0, "$_: no table page is read") foreach sort keys %plan;
cmp_ok($plan{t_btree}{'Shared Hit Blocks'}, '>', 4000, 'a B-tree reads the map for about every second row');
cmp_ok($plan{t_lsm}{'Shared Hit Blocks'}, '<', 1000, 'an lsm index reads the map once for a group of rows');
same('all visible');

$node->safe_psql('postgres', '
	DELETE FROM t WHERE v % 700 < 3;
	UPDATE t SET v = v + 20000 WHERE v % 900 = 5');
cmp_ok(index_only('t_lsm', $all)->{'Heap Fetches'}, '>', 100, 'some pages are not all-visible');
same('not all visible');
$node->safe_psql('postgres', 'VACUUM t');
same('vacuumed');
check_clean($node, 'the indexes are sound');

done_testing();
