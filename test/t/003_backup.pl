# A base backup taken under load and restored to a point in time; an unlogged
# index after a crash; dump and restore.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('node', init => { has_archiving => 1, allows_streaming => 1 }, conf => "fsync = off\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i * 31 % 500, 's' || i % 20, i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_sn ON t USING lsm (s DESC, n);
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING lsm (k);
INSERT INTO u SELECT generate_series(1, 500);
});

my $load = load_start($node, clients => 3, seconds => 10, scripts => [
		[ 5, "\\set k random(1, 1000)\nINSERT INTO t SELECT :k, 's' || :k % 20, :k FROM generate_series(1, 3);\n" ],
		[ 1, "\\set k random(1, 1000)\nDELETE FROM t WHERE k = :k;\n" ] ]);
sleep 1;
$node->backup('under_load');
$node->safe_psql('postgres', 'VACUUM t');
load_stop($load);

# What is to be found at the restore point.
my $sum = 'SELECT count(*), sum(k), sum(n) FROM t';
my $expected = $node->safe_psql('postgres', $sum);
$node->safe_psql('postgres', q{SELECT pg_create_restore_point('here')});
$node->safe_psql('postgres', q{DELETE FROM t WHERE k % 2 = 0});
$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', q{INSERT INTO t SELECT i, 'later', i FROM generate_series(1, 500) i});
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
check_clean($node, 'the original');

my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'under_load', has_restoring => 1, standby => 0);
$restored->append_conf('postgresql.conf', "recovery_target_name = 'here'\nrecovery_target_action = 'promote'\n");
$restored->start;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
is($restored->safe_psql('postgres', $sum), $expected, 'restored to the point in time');
check_clean($restored, 'indexes of the restored cluster are whole');
$restored->safe_psql('postgres', q{INSERT INTO t SELECT i, 'new', i FROM generate_series(1, 2000) i});
$restored->safe_psql('postgres', 'VACUUM t');
check_clean($restored, 'and can be written and vacuumed');
is($restored->safe_psql('postgres', 'SELECT count(*) FROM u'), 0, 'an unlogged table is empty after a restore');
$restored->stop;

# An unlogged index starts again from its init fork.
kill_postmaster($node);
$node->start;
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE k > 0'), 0,
	'an unlogged index is empty after a crash');
$node->safe_psql('postgres', 'INSERT INTO u SELECT generate_series(1, 700)');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE k > 0'), 700, 'and takes rows again');
check_clean($node, 'all is whole after the crash');

# Dump and restore.
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'dump');
like(slurp_file($dump), qr/CREATE INDEX t_sn ON public\.t USING lsm \(s DESC, n\)/, 'the definition is dumped');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ], 'restore');
check_clean($node, 'indexes of the copy are whole', db => 'copy');
$node->stop;
done_testing();
