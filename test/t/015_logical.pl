# Logical replication into a table whose primary key is an lsm index. The subscriber applies inserts, updates and
# deletes. On 17 the subscriber cannot search such an index, and its error says so.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = new_node('publisher', init => { allows_streaming => 'logical' }, conf => "fsync = off\n");
my $subscriber = new_node('subscriber', init => { allows_streaming => 'logical' }, conf => "fsync = off\n");
foreach my $node ($publisher, $subscriber)
{
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_lsm;
		CREATE TABLE t (id int PRIMARY KEY WITH (lsm), v text, n int UNIQUE WITH (lsm))});
}
$publisher->safe_psql('postgres', q{
	INSERT INTO t SELECT i, 'first', i FROM generate_series(1, 300) i;
	CREATE PUBLICATION p FOR TABLE t});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's') if $subscriber->can('wait_for_subscription_sync');
$subscriber->poll_query_until('postgres', 'SELECT count(*) = 300 FROM t');
$publisher->safe_psql('postgres', "INSERT INTO t SELECT i, 'second', i FROM generate_series(301, 500) i");
$publisher->wait_for_catchup('s');
is($subscriber->safe_psql('postgres', 'SELECT count(*), sum(id) FROM t'), '500|125250', 'the subscriber applies inserts');

my $version = $publisher->safe_psql('postgres', 'SHOW server_version_num');
$publisher->safe_psql('postgres', q{
	UPDATE t SET v = 'third' WHERE id % 5 = 0;
	UPDATE t SET id = id + 1000, n = n + 1000 WHERE id % 7 = 0;
	DELETE FROM t WHERE id % 3 = 0});
if ($version >= 170000 && $version < 180000)
{
	ok($subscriber->wait_for_log(qr/missing operator 0/), 'a subscriber on 17 reports that it cannot search the index');
}
else
{
	$publisher->wait_for_catchup('s');
	my $rows = 'SELECT count(*), sum(id), sum(n), md5(string_agg(v, id::text ORDER BY id)) FROM t';
	is($subscriber->safe_psql('postgres', $rows), $publisher->safe_psql('postgres', $rows), 'the subscriber applies updates and deletes');
	check_clean($subscriber, "the subscriber's index is sound");
	# A conflict stops the subscription. It continues once the conflict is resolved.
	$subscriber->safe_psql('postgres', "INSERT INTO t VALUES (5000, 'mine', 5000)");
	$publisher->safe_psql('postgres', "INSERT INTO t VALUES (5001, 'theirs', 5000)");
	ok($subscriber->wait_for_log(qr/duplicate key value violates unique constraint "t_n_key"|conflict detected on relation "public.t"/), 'a conflict is reported');
	$subscriber->safe_psql('postgres', 'DELETE FROM t WHERE id = 5000');
	$publisher->wait_for_catchup('s');
	is($subscriber->safe_psql('postgres', 'SELECT id FROM t WHERE n = 5000'), '5001', 'and then replication continues');
}
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE');
$subscriber->stop('immediate');
$publisher->stop('immediate');
done_testing();
