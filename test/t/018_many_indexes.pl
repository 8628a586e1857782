# More busy indexes than shared memory has slots for: rows go to 1150 partitions in turn. Indexes without a slot have
# neither counters nor workers, so their writers merge.
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

my $all = q{SELECT c.oid AS i, s.indexrelid IS NOT NULL AS has_slot FROM pg_class c LEFT JOIN lsm_stat_indexes() s ON s.indexrelid = c.oid
	WHERE c.relkind = 'i' AND c.relname LIKE 'many\_%\_v\_idx'};
is(sql("SELECT count(*), count(*) FILTER (WHERE has_slot) FROM ($all) q"), "$indexes|$slots", 'all slots are taken, and some indexes have none');
is(sql("SELECT count(lsm_check(i, true)::text) FROM ($all) q"), $indexes, 'all are sound, and have all rows');
is(sql("SELECT sum(entries) FROM ($all) q, lsm_runs(i)"), 42 * $indexes, 'each row once');
cmp_ok(sql("SELECT max(n) FROM (SELECT i, count(*) AS n FROM ($all) q, lsm_runs(i) WHERE NOT has_slot GROUP BY 1) r"), '<', 10,
	'writers merge those that have no slot');
my ($without) = split /\n/, sql("SELECT indrelid::regclass FROM ($all) q JOIN pg_index ON indexrelid = i WHERE NOT has_slot LIMIT 1");
ok(same_rows($node, "SELECT v FROM $without WHERE v > 0"), 'they are read like any other');
$node->stop;
done_testing();
