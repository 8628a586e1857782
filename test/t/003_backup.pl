# Base backup under load, restore to a point in time, and unlogged indexes, which a crash or a restore resets.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', init => { has_archiving => 1, allows_streaming => 1 }, conf => "fsync = off\nmax_wal_size = 64MB\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C", who int) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_sk ON t USING lsm (s, k DESC);
INSERT INTO t SELECT i % 100, 's' || i % 10, -1 FROM generate_series(1, 1000) i;
CREATE UNLOGGED TABLE u (k int, s text COLLATE "C");
CREATE INDEX u_k ON u USING lsm (k, s);
INSERT INTO u SELECT i % 100, 's' || i FROM generate_series(1, 1000) i;
CREATE UNLOGGED TABLE u_empty (k int);
CREATE INDEX u_empty_k ON u_empty USING lsm (k);
});

# The backup runs while clients insert and delete rows and merge runs.
my @scripts = (
	[ 5, "\\set k random(0, 100)\nINSERT INTO t SELECT (:k * i) % 100, 's' || i % 10, :client_id FROM generate_series(1, 30) i;\n" ],
	[ 1, "\\set k random(0, 100)\nDELETE FROM t WHERE k = :k AND who = :client_id;\n" ],
	[ 1, "VACUUM (TRUNCATE off) t;\n" ]);
my $load = load_start($node, name => 'backup', clients => 2, seconds => 5, scripts => \@scripts);
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM lsm_runs('t_k') WHERE state = 'merging'}) or die 'no merge is in progress';
$node->backup('backup');
$node->safe_psql('postgres', q{INSERT INTO t SELECT i % 100, 'before', 100 FROM generate_series(1, 77) i});
$node->safe_psql('postgres', q{SELECT pg_create_restore_point('here')});
$node->safe_psql('postgres', q{INSERT INTO t SELECT i % 100, 'after', 101 FROM generate_series(1, 99) i});
load_stop($load);
my $file = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
$node->poll_query_until('postgres', "SELECT last_archived_wal >= '$file' FROM pg_stat_archiver") or die 'WAL is not archived';
check_clean($node, 'indexes of the server that was backed up are sound');

# Restore to the restore point: earlier rows are there, later rows are not.
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'backup', has_restoring => 1, standby => 0);
$restored->append_conf('postgresql.conf', "recovery_target_name = 'here'\nrecovery_target_action = 'promote'\narchive_mode = off\n");
$restored->start;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery did not end';
check_clean($restored, 'indexes restored to a point in time are sound');
is($restored->safe_psql('postgres', q{SET enable_seqscan = off;
		SELECT count(*) FILTER (WHERE s = 'before'), count(*) FILTER (WHERE s = 'after') FROM t WHERE s IN ('before', 'after')}),
	'77|0', 'only rows from before the restore point are restored');

# Unlogged tables are empty on a restored server, and their indexes work.
is($restored->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE k >= 0'), 0, 'an unlogged index is empty after a restore');
$restored->safe_psql('postgres', q{INSERT INTO u SELECT i % 100, 'new' || i FROM generate_series(1, 500) i; INSERT INTO u_empty SELECT i FROM generate_series(1, 100) i});
check_clean($restored, 'unlogged indexes are sound after inserts into the restored server');
$load = load_start($restored, name => 'restored', clients => 2, seconds => 1, scripts => \@scripts);
load_stop($load);
check_clean($restored, 'indexes are sound after more writes to the restored server');
$restored->stop;

# Restore to the end of the archive.
my $whole = PostgreSQL::Test::Cluster->new('whole');
$whole->init_from_backup($node, 'backup', has_restoring => 1, standby => 0);
$whole->append_conf('postgresql.conf', "archive_mode = off\n");
$whole->start;
$whole->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery did not end';
check_clean($whole, 'indexes restored to the end of the archive are sound');
is($whole->safe_psql('postgres', 'SELECT count(*), sum(k) FROM t'), $node->safe_psql('postgres', 'SELECT count(*), sum(k) FROM t'), 'all rows are restored');
$whole->stop;

# A crash resets unlogged indexes; a clean stop keeps them.
is($node->safe_psql('postgres', 'SELECT count(*) FROM u'), 1000, 'the unlogged table has rows before the restart');
$node->restart;
check_clean($node, 'unlogged indexes are sound after a clean restart');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE k >= 0'), 1000, 'unlogged rows survive a clean restart');
$node->stop('immediate');
$node->start;
check_clean($node, 'unlogged indexes are sound after a crash');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE k >= 0'), 0, 'an unlogged index is empty after a crash');
$node->safe_psql('postgres', q{INSERT INTO u SELECT i % 100, 'new' || i FROM generate_series(1, 700) i; DELETE FROM u WHERE k % 3 = 0; INSERT INTO u_empty SELECT i FROM generate_series(1, 100) i});
$node->safe_psql('postgres', 'VACUUM u');
check_clean($node, 'unlogged indexes are sound after inserts that follow a crash');
# Again, after the tables changed their persistence.
$node->safe_psql('postgres', 'ALTER TABLE u SET LOGGED; ALTER TABLE t SET UNLOGGED');
$node->stop('immediate');
$node->start;
check_clean($node, 'indexes are sound after SET LOGGED, SET UNLOGGED and a crash');
is($node->safe_psql('postgres', 'SELECT (SELECT count(*) > 0 FROM u), (SELECT count(*) FROM t)'), 't|0', 'logged rows survive the crash, unlogged rows do not');
$node->safe_psql('postgres', q{INSERT INTO t SELECT i % 100, 'again', 1 FROM generate_series(1, 700) i});
check_clean($node, 'indexes of the emptied table are sound after inserts');

# All lsm pages of a backup pass pg_verifybackup's checksums: their files need no special treatment.
command_ok([ 'pg_verifybackup', '-n', $node->backup_dir . '/backup' ], 'pg_verifybackup accepts the backup');
$node->stop;
done_testing();
