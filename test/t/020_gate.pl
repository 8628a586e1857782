# A VACUUM is canceled while it waits for index-only scans. The scans then hold a gate that the next VACUUM needs. The
# next VACUUM waits before it does anything else. Otherwise it would have to visit segments that are merged meanwhile,
# while merges wait.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('main', conf => "pg_lsm.max_workers = 0\nautovacuum = off\n");
my $vacuum = 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) g';

# Entries of rows that never existed, so they are dead to every snapshot.
sub make_dead_rows
{
	$node->safe_psql('postgres', 'BEGIN; INSERT INTO g SELECT generate_series(20001, 25000); ROLLBACK');
}

sub entries
{
	return $node->safe_psql('postgres', q{SELECT sum(entries) FROM lsm_runs('g_k')});
}

# Begins a VACUUM and returns once it waits for a pin.
sub begin_vacuum
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/begun/, "\\echo begun\n$vacuum;\n");
	$node->poll_query_until('postgres',
		qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '$vacuum%' AND wait_event IN ('BufferPin', 'BufferCleanup')})
		or die 'VACUUM did not wait';
	return $session;
}

$node->safe_psql('postgres', q{
	CREATE TABLE g (k int);
	CREATE INDEX g_k ON g USING lsm (k);
	INSERT INTO g SELECT generate_series(1, 10000);
	VACUUM g;
});
make_dead_rows();
is(entries(), 15000, 'the index has entries of dead rows');

my $reader = $node->background_psql('postgres');
$reader->query_safe(q{SET enable_seqscan = off; SET enable_bitmapscan = off; SET pg_lsm.enable_prefetch_scan = off});
like($reader->query_safe('EXPLAIN SELECT k FROM g WHERE k > 0 ORDER BY k'), qr/Index Only Scan/, 'the reader uses an index-only scan');
$reader->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT k FROM g WHERE k > 0 ORDER BY k; FETCH 1 FROM c');

my $first = begin_vacuum();
is(entries(), 10000, 'VACUUM has removed the entries, and waits for the reader');
$node->safe_psql('postgres', qq{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '$vacuum%'});
$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE '$vacuum%' AND state = 'active'})
	or die 'VACUUM was not canceled';
$first->quit;

make_dead_rows();
my $second = begin_vacuum();
is(entries(), 15000, 'the next VACUUM waits before it visits any page');
$node->safe_psql('postgres', q{INSERT INTO g SELECT generate_series(10001, 20000); SELECT lsm_compact('g_k')});
is(entries(), 25000, 'inserts and merges do not wait for VACUUM');
is($reader->query_safe('FETCH 1 FROM c'), 2, 'the reader continues');
$reader->query_safe('COMMIT');
$reader->quit;
$second->quit;
is(entries(), 20000, 'VACUUM then removes all dead entries');
check_clean($node, 'the index is sound after VACUUM');

$node->stop;
done_testing();
