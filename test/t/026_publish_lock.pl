# Single rows of a unique index take different parts of the publish lock, so they do not
# queue at the same part. A batch takes all parts, so it waits for every row that is being
# inserted and finds its key.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $sessions = 12;
my $node = start_new_node('publish', conf => $LsmTest::full);

plan skip_all => 'pg_lsm was built without stop points'
  if ($node->psql('postgres', "LOAD 'pg_lsm'; SHOW pg_lsm.debug_stop_at"))[0] != 0;
$node->safe_psql('postgres', 'CREATE TABLE t (k int8); CREATE UNIQUE INDEX t_k ON t USING lsm (k)');

# The FROM clause of a query about the index's tuple locks in this mode, granted or not.
sub locks
{
	my ($mode, $granted) = @_;
	return "FROM pg_locks WHERE locktype = 'tuple' AND relation = 't_k'::regclass AND mode = '$mode' AND granted = $granted";
}

my $holder = $node->background_psql('postgres');
$holder->query_safe("SELECT pg_advisory_lock(hashtext('unique-probed'))");
my @rows = map { $node->background_psql('postgres') } 1 .. $sessions;
foreach my $i (0 .. $#rows)
{
	$rows[$i]->query_until(qr/started/, "SET pg_lsm.debug_stop_at = 'unique-probed';\n\\echo started\nINSERT INTO t VALUES ($i);\n");
}
ok($node->poll_query_until('postgres', "SELECT count(*) = $sessions " . locks('ShareLock', 'true')), 'no single row waits for another');
cmp_ok($node->safe_psql('postgres', 'SELECT count(DISTINCT (page, tuple)) ' . locks('ShareLock', 'true')), '>', 1,
	'single rows take different parts of the publish lock');

# The inserts finish on their own, in the order in which they began. The batch has a key of
# the last row.
my $batch = $node->background_psql('postgres', on_error_stop => 0);
$batch->query_until(qr/started/, "\\echo started\nINSERT INTO t SELECT i FROM generate_series($#rows, 1000) i;\n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 ' . locks('ExclusiveLock', 'false')), 'a batch waits for single rows that are being inserted');
$holder->quit;
ok($_->quit, 'a single row is inserted') foreach @rows;
$batch->query('SELECT 1');
like($batch->{stderr}, qr/duplicate key value violates unique constraint "t_k"/, 'the batch finds the key of the last row');
$batch->quit;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), $sessions, 'the table has all single rows');
check_clean($node, 'the index is sound');
is($node->safe_psql('postgres', 'SELECT count(*) ' . locks('ShareLock', 'true')), 0, 'no lock is left');
$node->stop;
done_testing();
