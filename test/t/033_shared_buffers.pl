# Work on an index larger than shared buffers leaves a hot table in shared buffers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# The new node has 2048 buffers, the hot table 400 pages, and the index about 4000.
my $node = start_new_node('hot', conf => "$LsmTest::full\ncheckpoint_timeout = 1h\n");

$node->safe_psql('postgres', q{
	CREATE TABLE hot AS SELECT i, repeat(md5(i::text), 31) FROM generate_series(1, 2800) i;
	CREATE TABLE t (k int, pad text);
	ALTER TABLE t ALTER pad SET STORAGE plain;
	CREATE INDEX t_k ON t USING lsm (k) INCLUDE (pad);
	VACUUM hot});
$node->safe_psql('postgres', "INSERT INTO t SELECT hashint4(i), repeat(md5(i::text), 31) FROM generate_series($_ * 5000, $_ * 5000 + 4999) i")
  foreach 1 .. 6;
# VACUUM sets the hint bits. Otherwise reads would set them, and core takes a page that a read has changed out of its ring.
$node->safe_psql('postgres', 'VACUUM t');

# Returns how many pages of the hot table were in shared buffers, and reads in the others.
sub pages_found
{
	my $plan = $node->safe_psql('postgres', 'EXPLAIN (ANALYZE, BUFFERS) SELECT count(*) FROM hot');

	return $plan =~ /Buffers: shared hit=(\d+)/ ? $1 : 0;
}

sub stays_during
{
	my ($command) = @_;

	# The pages have been used only once, so they are the first to be evicted.
	$node->restart;
	pages_found();
	$node->safe_psql('postgres', $command);
	cmp_ok(pages_found(), '>', 350, "$command leaves the hot table in shared buffers");
	return;
}

cmp_ok($node->safe_psql('postgres', q{SELECT relpages FROM pg_class WHERE relname = 'hot'}), '>=', 400, 'pages of the hot table');
stays_during(q{SELECT lsm_compact('t_k')});
cmp_ok($node->safe_psql('postgres', q{SELECT pg_relation_size('t_k') / 8192}), '>', 4000, 'pages of the index');
stays_during(q{SELECT lsm_check('t_k', true)});
$node->safe_psql('postgres', 'DELETE FROM t WHERE k % 5 = 0');
stays_during('VACUUM t');
stays_during('CREATE INDEX t_k2 ON t USING lsm (k) INCLUDE (pad)');
$node->safe_psql('postgres', q{SELECT lsm_check('t_k', true), lsm_check('t_k2', true)});
$node->stop;
done_testing();
