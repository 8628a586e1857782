# A server that starts with the smallest shared_buffers recovers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('few', conf => "fsync = off\n$LsmTest::full");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C");
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_s ON t USING lsm (s);
CHECKPOINT;
});
# Large batches, merges with directories, and single rows.
$node->safe_psql('postgres', 'INSERT INTO t SELECT hashint4(i), md5(i::text) FROM generate_series(1, 30000) i') foreach 1 .. 3;
$node->safe_psql('postgres', q{SELECT lsm_compact('t_k'), lsm_compact('t_s')});
$node->safe_psql('postgres', 'INSERT INTO t SELECT hashint4(i), md5(i::text) FROM generate_series(1, 30000) i');
$node->safe_psql('postgres', "INSERT INTO t VALUES ($_, 'one')") foreach 1 .. 200;
$node->stop('immediate');

$node->append_conf('postgresql.conf', "shared_buffers = 128kB\n");
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 120200, 'the server recovers with 16 buffers');
$node->adjust_conf('postgresql.conf', 'shared_buffers', '8MB');
$node->restart;
check_clean($node, 'after recovery');
$node->stop;
done_testing();
