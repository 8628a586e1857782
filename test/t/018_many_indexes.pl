# More busy indexes than shared memory has slots for: rows go to 1150 partitions in turn. Indexes without a slot have no
# workers, so their writers merge. Before 18 they have no counters either.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('many', conf => "
max_locks_per_transaction = 256
pg_lsm.max_workers = 2
");
my $slots = 1024;
my $indexes = 1150;

sub sql
{
	return $node->safe_psql('postgres', @_);
}

sql("CREATE TABLE many (k int, v int) PARTITION BY LIST (k);
DO \$\$ BEGIN
	FOR i IN 1 .. $indexes LOOP EXECUTE format('CREATE TABLE many_%s PARTITION OF many FOR VALUES IN (%s)', i, i - 1); END LOOP;
END \$\$;
CREATE INDEX many_v ON many USING lsm (v)");
sql("INSERT INTO many SELECT i % $indexes, hashint4(i) FROM generate_series(1, 12 * $indexes) i");
sql("SET pg_lsm.batch_inserts = off; INSERT INTO many SELECT i % $indexes, hashint4(i) FROM generate_series(1, 30 * $indexes) i");

my $counts_all = $node->pg_version->major >= 18;
my $all = q{SELECT indexrelid AS i, relid, entries_inserted > 0 AS is_counted, entries_inserted FROM pg_stat_lsm_indexes
	WHERE relname LIKE 'many\_%'};
is(sql("SELECT count(*), count(*) FILTER (WHERE is_counted) FROM ($all) q"), $indexes . '|' . ($counts_all ? $indexes : $slots),
	$counts_all ? 'all indexes have counters' : 'all slots are taken, and some indexes have none');
is(sql("SELECT DISTINCT entries_inserted FROM ($all) q WHERE is_counted"), 42, 'all entries are counted');
is(sql("SELECT count(lsm_check(i, true)::text) FROM ($all) q"), $indexes, 'all indexes are sound and have all rows');
is(sql("SELECT sum(entries) FROM ($all) q, lsm_runs(i)"), 42 * $indexes, 'each row once');

# A transaction that reads many indexes frees the readers that it no longer uses.
my $readers = "SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'pg_lsm reader'";
my ($found, $most) = split(/\|/, sql("BEGIN;
SET enable_seqscan = off;
CREATE TEMP TABLE found (n int);
DO \$\$ DECLARE n int; BEGIN
	FOR turn IN 1 .. 2 LOOP
		FOR i IN 1 .. $indexes LOOP
			EXECUTE format('SELECT count(*) FROM many_%s WHERE v BETWEEN -2000000000 AND 2000000000', i) INTO n;
			INSERT INTO found VALUES (n);
		END LOOP;
	END LOOP;
END \$\$;
SELECT sum(n), ($readers) FROM found;
COMMIT"));
is($found, 2 * sql("SELECT count(*) FROM many WHERE v BETWEEN -2000000000 AND 2000000000"), 'a transaction reads all indexes twice');
cmp_ok($most, '<=', 256, 'it keeps the readers of few');
# So does a statement that inserts a row into each of many partitions with a key.
sql("CREATE TABLE once (k int) PARTITION BY LIST (k);
CREATE FUNCTION readers() RETURNS int LANGUAGE sql VOLATILE AS \$\$ $readers \$\$;
DO \$\$ BEGIN
	FOR i IN 0 .. 799 LOOP
		EXECUTE format('CREATE TABLE once_%s PARTITION OF once (PRIMARY KEY (k) WITH (lsm)) FOR VALUES IN (%s)', i, i);
	END LOOP;
END \$\$");
cmp_ok(sql("WITH w AS (INSERT INTO once SELECT generate_series(0, 799) RETURNING readers() AS n) SELECT max(n) FROM w"), '<', 500,
	'a statement that checks many keys keeps few readers');
# If all indexes have counters, nothing shows which of them have no slot.
my $without_slot = $counts_all ? 'true' : 'NOT is_counted';
cmp_ok(sql("SELECT max(n) FROM (SELECT i, count(*) AS n FROM ($all) q, lsm_runs(i) WHERE $without_slot GROUP BY 1) r"), '<', 10,
	'writers merge indexes without a slot');
my ($without) = split /\n/, sql("SELECT relid::regclass FROM ($all) q WHERE $without_slot LIMIT 1");
ok(same_rows($node, "SELECT v FROM $without WHERE v > 0"), 'an index without a slot is read like any other');
$node->stop;
done_testing();
