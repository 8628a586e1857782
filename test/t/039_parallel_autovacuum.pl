# Autovacuum in PostgreSQL 19 divides a table's lsm indexes among several workers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => "fsync = off\n");
$node->start;
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 190000)
{
	$node->stop;
	plan skip_all => 'parallel autovacuum came with PostgreSQL 19';
}
$node->append_conf('postgresql.conf', q{
autovacuum = on
autovacuum_naptime = 1s
autovacuum_max_parallel_workers = 4
max_worker_processes = 16
min_parallel_index_scan_size = 0
log_autovacuum_min_duration = 0
});
$node->restart;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_lsm;
	CREATE TABLE t (k int, u uuid, t text, n numeric)
		WITH (autovacuum_enabled = off, autovacuum_parallel_workers = 3, autovacuum_vacuum_scale_factor = 0);
	CREATE INDEX t_k ON t USING lsm (k);
	CREATE UNIQUE INDEX t_u ON t USING lsm (u);
	CREATE INDEX t_t ON t USING lsm (t);
	CREATE INDEX t_n ON t USING lsm (n);
	INSERT INTO t SELECT i, gen_random_uuid(), 'row ' || i, i / 8.0 FROM generate_series(1, 30000) i;
	DELETE FROM t WHERE k % 3 = 1;
	ALTER TABLE t SET (autovacuum_enabled = on);
});
ok($node->poll_query_until('postgres', q{SELECT autovacuum_count > 0 FROM pg_stat_all_tables WHERE relid = 't'::regclass}),
	'autovacuum has vacuumed the table');
like(slurp_file($node->logfile), qr/automatic vacuum of table "postgres.public.t".*parallel workers: index vacuum: 3 planned, 3 launched/s,
	'each worker had lsm indexes');
is($node->safe_psql('postgres', q{SELECT sum(entries) FROM lsm_runs('t_k')}), '20000', 'the entries of the dead rows are gone');
check_clean($node, 'indexes are sound after parallel autovacuum');
$node->stop;
done_testing();
