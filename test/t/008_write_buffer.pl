# Several open pages of the write buffer. Pages are opened when writers wait for each other and closed when they do not.
# A crash does not change the pages, a standby replays them, and an idle index ends with one open
# page.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', init => { allows_streaming => 1 }, conf => "
fsync = off
pg_lsm.batch_inserts = off
pg_lsm.debug_buffer_entries = 100
wal_consistency_checking = 'pg_lsm'
max_worker_processes = 12
");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE EXTENSION pg_walinspect;
CREATE TABLE rests (seconds float8);
INSERT INTO rests VALUES (0);
-- A comparison that can be made slow: meanwhile, other writers take the same place in the page.
CREATE FUNCTION slow_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM pg_sleep(seconds) FROM public.rests WHERE seconds > 0;
	RETURN pg_catalog.btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS slow_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 slow_cmp(int, int);
CREATE SEQUENCE places;
CREATE TABLE s (k int, n int) WITH (autovacuum_enabled = off);
CREATE INDEX s_k ON s USING lsm (k slow_ops);
CREATE INDEX s_n ON s USING lsm (n);
CREATE TABLE t (k int, s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_s ON t USING lsm (s, k);
});
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
my $wal_start = $node->lsn('insert');

sub open_pages
{
	my ($index) = @_;

	return $node->safe_psql('postgres', "SELECT count(*) FROM lsm_runs('$index') WHERE state = 'open'");
}

# Writers that wait for each other open pages.
$node->safe_psql('postgres', 'UPDATE rests SET seconds = 0.002');
my $load = load_start($node, name => 'wait', clients => 8, transactions => 40,
	scripts => [ [ 1, "INSERT INTO s VALUES (nextval('places'), 1);\n" ] ]);
unlike(load_stop($load), qr/ERROR|aborted/, 'writers that wait for each other have no errors');
$node->safe_psql('postgres', 'UPDATE rests SET seconds = 0');
my $open = open_pages('s_k');
cmp_ok($open, '>', 1, 'writers that wait for each other open pages');
cmp_ok($open, '<=', 8, 'no more open pages than allowed');
check_clean($node, "indexes are sound with $open open pages");

# A single writer needs one page.
$node->safe_psql('postgres', 'INSERT INTO s SELECT i, i FROM generate_series(1, 2000) i');
is(open_pages('s_k'), 1, 'a single writer closes all open pages but one');
check_clean($node, 'indexes are sound with one open page again');
flush_wal($node);
cmp_ok($node->safe_psql('postgres', qq{
	SELECT count(*) FROM pg_get_wal_records_info('$wal_start', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'pg_lsm' AND record_type = 'EDIT' AND description LIKE 'pages 1, operations 1, seals 1,%'}),
	'>', 0, 'WAL has records of seals without a new page');

# Crashes with several open pages that contain all kinds of entries.
foreach my $round (1 .. 4)
{
	my $pages = $round * 2;

	$load = load_start($node, name => "crash$round", clients => 6, options => "-c pg_lsm.debug_open_pages=$pages",
		scripts => [ [ 8, "\\set k random(0, 1000)\nINSERT INTO t VALUES (:k, 's' || :k % 50);\n" ],
			[ 1, "BEGIN;\nINSERT INTO t SELECT i, 'aborted' FROM generate_series(1, 20) i;\nROLLBACK;\n" ],
			[ 1, "\\set k random(0, 1000)\nDELETE FROM t WHERE k BETWEEN :k AND :k + 5;\n" ],
			$round % 2 ? [ 1, "VACUUM (TRUNCATE off) t;\n" ] : () ]);
	# Most pages have entries, and all are open.
	$node->poll_query_until('postgres', "SELECT count(*) = $pages AND sum(entries) > 50 FROM lsm_runs('t_k') WHERE state = 'open'")
		or die 'the pages were not opened';
	my $before = open_pages('t_k');
	$node->stop('immediate');
	load_stop($load);
	$node->start;
	is($before, $pages, "round $round: $pages pages were open before the crash");
	is(open_pages('t_k'), $pages, "round $round: the same number of pages is open after the crash");
	check_clean($node, "round $round: indexes are sound after a crash with open pages");
	$node->safe_psql('postgres', "SELECT lsm_compact('t_s')") if $round == 3;
}

# The standby has the same pages.
catch_up($node, $standby);
check_clean($standby, 'indexes on the standby are sound', no_check => 1);
is($standby->safe_psql('postgres', "SELECT count(*) FROM lsm_runs('t_k') WHERE state = 'open'"), 8, 'the standby has the same number of open pages');

# lsm_compact leaves a single page, empty.
$node->safe_psql('postgres', "SELECT lsm_compact('t_k')");
is($node->safe_psql('postgres', "SELECT state, entries > 0 FROM lsm_runs('t_k') ORDER BY 1"), "open|f\npacked|t", 'lsm_compact closes all open pages and leaves one empty page');
check_clean($node, 'indexes are sound after lsm_compact');

# An idle index soon has one open page.
$node->append_conf('postgresql.conf', "pg_lsm.max_workers = 1\npg_lsm.idle_delay = '100ms'\n");
$node->reload;
$node->safe_psql('postgres', "SET pg_lsm.debug_open_pages = 5; INSERT INTO t SELECT i, 'idle' FROM generate_series(1, 20) i");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM lsm_runs('t_k') WHERE state = 'open'"), 'an idle index is left with one open page');
check_clean($node, 'indexes are sound after the workers');

$standby->stop;
$node->stop;
done_testing();
