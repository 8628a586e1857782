# lsm_advise on databases with one workload each: it reports the B-trees that would benefit from lsm, and
# no others. bench/advise.sh measures whether the gain is real.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('advise', conf => "shared_buffers = 512kB\neffective_cache_size = 1MB\n");
my $keys_need_btree = $node->pg_version->major < 18;

# What a database gets: a table with an ascending id and a random key, procedures for its workload, and statistics.
my $table = q{CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k uuid, n int, s text);
	CREATE INDEX t_k ON t (k);};
my $bulk = q{CREATE PROCEDURE load(batches int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. batches LOOP
			INSERT INTO t (k, n) SELECT gen_random_uuid(), j % 7 FROM generate_series(1, 1000) j;
			COMMIT;
		END LOOP;
	END $$;};
my $single = q{CREATE PROCEDURE load_rows(rows int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. rows LOOP
			INSERT INTO t (k) VALUES (gen_random_uuid());
			COMMIT;
		END LOOP;
	END $$;};
my $statistics = 'ANALYZE; SELECT pg_stat_force_next_flush();';
my $advice = q{SELECT index, relation, coalesce(statements, loss) FROM lsm_advise()};

sub database
{
	my ($name, $workload, %settings) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql('postgres', "ALTER DATABASE $name SET $_ = '$settings{$_}'") foreach keys %settings;
	$node->safe_psql($name, "CREATE EXTENSION pg_lsm; $workload; $statistics");
	return;
}

sub advises
{
	my ($name, $expected, $text) = @_;

	is($node->safe_psql($name, $advice), $expected, $text) or diag($node->safe_psql($name, '\x
		SELECT * FROM lsm_advise(); SELECT * FROM pg_stat_user_tables; SELECT * FROM pg_statio_user_indexes;
		SELECT * FROM pg_stat_user_indexes; SELECT * FROM pg_stats; SELECT * FROM pg_stat_database'));
	return;
}

my $yes = q{t_k|t|CALL public.lsm_convert('public.t_k')};

database('beyond', "$table $bulk CALL load(40)");
advises('beyond', $yes, 'random keys beyond memory: the B-tree is reported');
like($node->safe_psql('beyond', 'SELECT reason, gain, loss FROM lsm_advise()'),
	qr/^Keys arrive in random order\. .* the memory is 1024 kB.*\|.*6 to 20 times.*docs\/performance\.md.*\|.*preloaded/, 'reason, gain and loss are in words');

database('ascending', "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k uuid, n int); $bulk CALL load(40)");
advises('ascending', '', 'ascending keys: nothing is reported');

database('memory_rows', "$table $single CALL load_rows(2000)", effective_cache_size => '1GB');
advises('memory_rows', '', 'random keys in memory, row by row: nothing is reported');
database('memory_bulk', "$table $bulk DROP INDEX t_k; CREATE INDEX t_k ON t ((k::text || repeat('x', 300))); CALL load(50)",
	effective_cache_size => '1GB');
advises('memory_bulk', $yes, 'random keys in memory, many rows per statement: the B-tree is reported');
like($node->safe_psql('memory_bulk', 'SELECT reason, gain FROM lsm_advise()'), qr/write \d{3} rows on average\.\|.*1\.9 times/, 'reason and gain are in words');

database('reads', "$table $bulk CALL load(40); $statistics SELECT pg_stat_reset(); CALL load(2);
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	DO \$\$ DECLARE key uuid; BEGIN
		FOR i IN 1 .. 20000 LOOP key := gen_random_uuid(); PERFORM FROM t WHERE k = key; END LOOP; END \$\$");
advises('reads', '', 'mostly lookups: nothing is reported');

database('queue', "$table $bulk CREATE PROCEDURE turns(turns int) LANGUAGE plpgsql AS \$\$
	BEGIN
		FOR i IN 1 .. turns LOOP
			CALL load(1);
			DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY id LIMIT 1000);
			COMMIT;
		END LOOP;
	END \$\$; DROP INDEX t_k; CALL load(1); CALL turns(20)");
advises('queue', '', 'a queue: nothing is reported');

my $updates = 'CREATE PROCEDURE updates(rows int) LANGUAGE plpgsql AS $$
	DECLARE
		victim bigint;
	BEGIN
		FOR i IN 1 .. rows LOOP
			victim := 1 + random() * 39999;
			UPDATE t SET k = gen_random_uuid() WHERE id = victim;
			COMMIT;
		END LOOP;
	END $$;';
database('updates', "$table $bulk $updates CALL load(40); SELECT pg_stat_reset(); CALL updates(2000)", effective_cache_size => '1GB');
advises('updates', '', 'updates in memory: nothing is reported');
database('updates_beyond', "$table $bulk $updates CALL load(40); SELECT pg_stat_reset(); CALL updates(2000)", effective_cache_size => '1MB');
advises('updates_beyond', $yes, 'updates beyond memory: the B-tree is reported');
database('hot', "$table $bulk ALTER TABLE t SET (fillfactor = 30); CALL load(20); SELECT pg_stat_reset();
	UPDATE t SET n = 0 WHERE id % 3 = 0");
advises('hot', '', 'HOT updates: nothing is reported');

# The columns before an ascending column determine over how many pages new entries are spread.
database('many', "CREATE TABLE t (k uuid, n int, at timestamptz DEFAULT clock_timestamp());
	CREATE INDEX few_random ON t (n, k);
	CREATE INDEX few_ascending ON t (n, at);
	CREATE INDEX t_expression ON t ((k::text));
	CREATE INDEX t_partial ON t (k) WHERE n < 5;
	CREATE INDEX t_few ON t (n);
	$bulk CALL load(40)");
is($node->safe_psql('many', 'SELECT index FROM lsm_advise() ORDER BY index::text COLLATE "C"'), "few_random\nt_expression\nt_partial",
	'columns after the first, expressions and partial indexes are considered');

# Indexes that lsm_convert refuses.
database('refused', "$table $bulk DROP INDEX t_k; ALTER TABLE t ADD UNIQUE (k) DEFERRABLE; CALL load(40)");
like($node->safe_psql('refused', $advice), qr/^t_k_key\|t\|lsm_convert refuses the index: It belongs to a deferrable constraint/, 'a deferrable constraint: the loss says why lsm_convert refuses');
database('referred', "$table $bulk DROP INDEX t_k; ALTER TABLE t ADD UNIQUE (k);
	CREATE TABLE r (k uuid REFERENCES t (k)); CALL load(40)");
like($node->safe_psql('referred', $advice), $keys_need_btree ? qr/^t_k_key\|t\|lsm_convert refuses.*Before PostgreSQL 18/ : qr/^t_k_key\|t\|CALL/, 'a key with foreign keys: the statements depend on the version');
is($node->safe_psql('refused', 'SELECT count(*) FROM lsm_advise() WHERE statements IS NULL'), '1', 'there is no statement to run');

# What lsm_advise cannot know.
my ($ret, $out, $err) = $node->psql('refused', 'TRUNCATE t; CREATE TABLE fresh AS SELECT generate_series(1, 2000) i;
	SELECT pg_stat_force_next_flush(); SELECT * FROM lsm_advise()');
like($err, qr/NOTICE:  left out 1 tables without statistics.*HINT:  Run ANALYZE/s, 'a notice counts tables without statistics');
($ret, $out, $err) = $node->psql('refused', 'SELECT pg_stat_reset(); SELECT * FROM lsm_advise()');
like($err, qr/NOTICE:  statistics were reset less than a day ago/, 'a notice says that statistics were reset recently');
$node->safe_psql('postgres', 'CREATE ROLE alice');
is($node->safe_psql('beyond', "SET ROLE alice; $advice"), '', 'tables that a user may not read are left out');
is($node->safe_psql('beyond', "GRANT SELECT ON t TO alice; SET ROLE alice; $advice"), $yes, 'a user who may read the table sees the statement for its owner');

# No name is run as a statement. For a partition's index, the statement converts the topmost index.
database('partitions', "CREATE TABLE t (k uuid, n int) PARTITION BY RANGE (n); CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (9);
	CREATE INDEX \"t_k\nCREATE TABLE captured ();--\" ON t (k); $bulk CALL load(40)");
is($node->safe_psql('partitions', 'SELECT index FROM lsm_advise()'), 't1_k_idx', 'the index of a partition is reported');
$node->safe_psql('partitions', 'SELECT statements FROM lsm_advise() \gexec');
is($node->safe_psql('partitions', q{SELECT string_agg(DISTINCT amname, ' ') FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname ~ '^t1?_k'}),
	'lsm', 'the statement converts the topmost index');
is($node->safe_psql('partitions', q{SELECT to_regclass('captured') IS NULL}), 't', 'a name with a newline is not run');

# lsm_advise works with any search_path, and its statements can be run.
is($node->safe_psql('beyond', "CREATE SCHEMA evil; CREATE FUNCTION evil.round(numeric) RETURNS text LANGUAGE sql AS 'SELECT 1 / 0';
	CREATE FUNCTION public.lsm_convert_plan(regclass) RETURNS void LANGUAGE sql AS 'SELECT 1 / 0';
	SET search_path = evil, public, pg_catalog; SET client_min_messages = error; $advice"), $yes =~ s/^t_k\|t/t_k|t/r, 'the search_path does not matter');
$node->safe_psql('beyond', $node->safe_psql('beyond', 'SELECT statements FROM lsm_advise()'));
advises('beyond', '', 'after the conversion, nothing is reported');
$node->stop;
done_testing();
