# A crash at every stop point (src/base/stop_point.h), while a plain and a unique index are written, merged, vacuumed
# and truncated. After each crash the indexes pass lsm_check and return the rows of a sequential scan, and the table has
# all committed rows. Then the same command succeeds.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('stop_points', conf => "restart_after_crash = on\n");

plan skip_all => 'pg_lsm was built without stop points'
  if ($node->psql('postgres', "LOAD 'pg_lsm'; SHOW pg_lsm.debug_stop_at"))[0] != 0;

# The stop point, its index, and the command that reaches it.
my $batch = 'INSERT INTO %s SELECT i, 1 FROM generate_series(2001, 2080) i';
my $large = 'INSERT INTO %s SELECT i, 1 FROM generate_series(100001, 130000) i';
my $rows = 'SET pg_lsm.batch_inserts = off; INSERT INTO %s SELECT i, 1 FROM generate_series(2001, 2020) i';
my $compact = "SELECT lsm_compact('%s_k')";
my $vacuum = 'VACUUM %s';
my $build = "REINDEX INDEX %s_k";
my $scan = 'SET enable_seqscan = off; SELECT count(*) FROM %s WHERE k > 0';
my @cases = (
	[ 'batch-write', $batch ], [ 'batch-written', $batch ],
	[ 'page-seal', $rows ], [ 'page-sealed', $rows ], [ 'page-open', $rows ], [ 'page-opened', $rows ],
	[ 'space-extend', $large ], [ 'merge-begun', $compact ], [ 'merge-move', $compact ], [ 'space-reserved', $compact ], [ 'merge-save', $compact ],
	[ 'merge-install', $compact ], [ 'merge-free', $compact ], [ 'space-freed', $compact ],
	[ 'vacuum-page', $vacuum ], [ 'vacuum-found', $vacuum ], [ 'vacuum-flip', $vacuum ], [ 'vacuum-drain', $vacuum ],
	[ 'truncate-lock', $vacuum ], [ 'truncate-cut', $vacuum ],
	[ 'build-begun', $build ], [ 'build-install', $build ],
	[ 'read-version', $scan ],
	[ 'unique-probed', $rows, 'u' ], [ 'unique-checked', $batch, 'u' ], [ 'unique-publish', $batch, 'u' ]);

# Many small runs with rows to remove, in a file with a free end; or an empty index.
sub fill
{
	my ($table, $empty) = @_;
	my $unique = $table eq 'u' ? 'UNIQUE' : '';

	$node->safe_psql('postgres', "
		DROP TABLE IF EXISTS $table;
		CREATE TABLE $table (k int, f int);
		CREATE $unique INDEX ${table}_k ON $table USING lsm (k)");
	return if $empty;
	$node->safe_psql('postgres', join ';', map {
		my $from = 60 * $_;
		"INSERT INTO $table SELECT i, 0 FROM generate_series($from, $from + 59) i" } 0 .. 9);
	$node->safe_psql('postgres', "
		INSERT INTO $table SELECT i, 0 FROM generate_series(10000, 60000) i;
		DELETE FROM $table WHERE k % 3 = 0 OR k >= 10000");
	return;
}

sub contents
{
	my ($table) = @_;

	return $node->safe_psql('postgres', "
		SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
		SELECT count(*), sum(k), sum(f) FROM $table");
}

foreach my $case (@cases)
{
	my ($point, $template, @tables) = @$case;

	@tables = ('t', 'u') unless @tables;
	foreach my $table (@tables)
	{
		my $command = sprintf($template, $table);
		my $name = "$point, " . ($table eq 'u' ? 'unique' : 'plain');

		# The first row of an index opens a page; later a seal does.
		fill($table, $point =~ /^page-open/);
		my $before = contents($table);
		my $checkpointer = checkpointer($node);
		my ($ret, $out, $err) = $node->psql('postgres', "SET pg_lsm.debug_stop_at = '$point:crash'; $command");
		isnt($ret, 0, "$name: the server crashes");
		wait_for_restart($node, $checkpointer);
		is(contents($table), $before, "$name: the table has exactly the committed rows");
		check_clean($node, "$name: the index is sound");
		$node->safe_psql('postgres', $command);
		check_clean($node, "$name: the command succeeds afterwards");
		$node->safe_psql('postgres', "DROP TABLE $table");
	}
}

$node->stop;
done_testing();
