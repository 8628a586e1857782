# Unique indexes under load. Many sessions insert, update and delete rows with few distinct keys, some in prepared
# transactions, while merges, VACUUM and REINDEX run. Then the server is killed under the same load, and a standby is
# checked. No two rows ever share a key.
#
# PG_LSM_KILLS: this test does a tenth as many kills, at least one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $small = "pg_lsm.debug_buffer_entries = 6\npg_lsm.debug_page_entries = 9\npg_lsm.debug_merge_fanout = 3\npg_lsm.debug_foreground_blocks = 4\npg_lsm.debug_segment_size = 4\n";
my $node = new_node('unique', conf => "$small\nfsync = off\nlock_timeout = '180s'\ndeadlock_timeout = '50ms'\n", init => { allows_streaming => 1 });
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s numeric, who int);
CREATE UNIQUE INDEX t_k ON t USING lsm (k) INCLUDE (who);
CREATE UNIQUE INDEX t_s ON t USING lsm (s, (k % 2)) WHERE who < 3;
});

# No two rows of the table itself share a key.
sub is_unique
{
	my ($server, $name) = @_;

	is($server->safe_psql('postgres', q{
		SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SELECT (SELECT count(*) FROM (SELECT FROM t GROUP BY k HAVING count(*) > 1) q),
			(SELECT count(*) FROM (SELECT FROM t WHERE who < 3 GROUP BY s, k % 2 HAVING count(*) > 1) q)}),
		'0|0', "$name: no two rows share a key");
	check_clean($server, $name);
	return;
}

# Each script catches the errors that it must expect.
sub try_to
{
	my ($sql) = @_;
	return "\\set k random(1, 60)\n\\set l random(1, 60)\nDO \$\$ BEGIN $sql EXCEPTION WHEN unique_violation OR deadlock_detected THEN NULL; END \$\$;\n";
}
my $insert = try_to('INSERT INTO t VALUES (:k, :l, :client_id);');
my $several = try_to('INSERT INTO t SELECT i, i, :client_id FROM generate_series(:k, :k + 7) i;');
my $update = try_to('UPDATE t SET k = :l, s = s + 0.0 WHERE k = :k;');
my $all = try_to('UPDATE t SET s = s + 1 WHERE k BETWEEN :k AND :k + 3;');
my $delete = try_to('DELETE FROM t WHERE k BETWEEN :k AND :k + 4;');
my $swap = try_to('DELETE FROM t WHERE k = :k; INSERT INTO t VALUES (:k, :k, :client_id);');
my $sub = try_to('BEGIN INSERT INTO t VALUES (:k, :l, :client_id); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; INSERT INTO t VALUES (:k, :l, 5);');
my $prepare = "\\set k random(61, 70)\n\\set id random(1, 1000000000)\nBEGIN;\nDELETE FROM t WHERE k = :k AND who = :client_id;\nINSERT INTO t VALUES (:k * 10 + :client_id, :id, :client_id);\nPREPARE TRANSACTION 'u:client_id_:id';\nROLLBACK PREPARED 'u:client_id_:id';\n";
my @scripts = ([ 6, $insert ], [ 2, $several ], [ 3, $update ], [ 1, $all ], [ 3, $delete ], [ 3, $swap ], [ 2, $sub ], [ 1, $prepare ]);

my $load = load_start($node, name => 'one', clients => 5, seconds => 8, scripts => \@scripts);
my $end = time + 6;
my $reindexed = 0;
while (time < $end)
{
	$node->safe_psql('postgres', 'VACUUM t');
	$node->safe_psql('postgres', "SELECT lsm_compact('t_k')");
	$node->safe_psql('postgres', "SELECT lsm_check('t_k', true), lsm_check('t_s', true)");
	# The session may be chosen as the victim of a deadlock.
	$reindexed += $node->psql('postgres', 'REINDEX INDEX CONCURRENTLY t_k') == 0;
}
my $out = load_stop($load);
unlike($out, qr/aborted|ERROR/, 'writers have only the errors that they expect');
cmp_ok($reindexed, '>', 0, 'REINDEX CONCURRENTLY succeeds beside writers');
is_unique($node, 'indexes are sound after the load');

# Batches of the same few keys, single rows beside them, and a session that looks for duplicates before it deletes all
# rows. The first rows of a statement are not batched, so they get keys of their own. Thus only the batches have the
# same keys.
$node->safe_psql('postgres', q{
CREATE TABLE b (k int); CREATE UNIQUE INDEX b_k ON b USING lsm (k);
CREATE TABLE bn (k numeric); CREATE UNIQUE INDEX bn_k ON bn USING lsm (k)});
my @meet;
foreach my $table ('b', 'bn')
{
	push @meet, [ 3, "\\set k random(1, 100000000)\n\\set s random(0, 3)\nDO \$\$ BEGIN INSERT INTO $table SELECT CASE WHEN i <= 4 THEN 1000 + :k * 8 + i ELSE i + :s * 10 END FROM generate_series(1, 40) i; EXCEPTION WHEN unique_violation OR deadlock_detected THEN NULL; END; \$\$;\n" ];
	push @meet, [ 2, "\\set k random(1, 80)\nDO \$\$ BEGIN INSERT INTO $table VALUES (:k); EXCEPTION WHEN unique_violation OR deadlock_detected THEN NULL; END; \$\$;\n" ];
	push @meet, [ 1, "\\set k random(1, 80)\nINSERT INTO $table SELECT i FROM generate_series(:k, :k + 3) i ON CONFLICT DO NOTHING;\n" ];
	push @meet, [ 2, "DO \$\$ BEGIN SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; IF (SELECT count(*) - count(DISTINCT k) FROM $table) > 0 THEN RAISE 'a key is there twice'; END IF; DELETE FROM $table; END; \$\$;\n" ];
}
$load = load_start($node, name => 'meet', clients => 6, seconds => 8, scripts => \@meet);
$out = load_stop($load);
unlike($out, qr/aborted|ERROR/, 'batches with the same keys leave no duplicates');
# Only single rows, with very few keys.
@meet = ();
foreach my $table ('b', 'bn')
{
	push @meet, [ 3, "\\set k random(1, 15)\nDO \$\$ BEGIN INSERT INTO $table VALUES (:k); EXCEPTION WHEN unique_violation OR deadlock_detected THEN NULL; END; \$\$;\n" ];
	push @meet, [ 1, "\\set k random(1, 15)\nINSERT INTO $table VALUES (:k) ON CONFLICT DO NOTHING;\n" ];
	push @meet, [ 2, "DO \$\$ BEGIN SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; IF (SELECT count(*) - count(DISTINCT k) FROM $table) > 0 THEN RAISE 'a key is there twice'; END IF; DELETE FROM $table; END; \$\$;\n" ];
}
$load = load_start($node, name => 'rows', clients => 6, seconds => 6, scripts => \@meet);
$out = load_stop($load);
unlike($out, qr/aborted|ERROR/, 'single rows with the same keys leave no duplicates');
is($node->safe_psql('postgres', "SELECT lsm_check('b_k', true), lsm_check('bn_k', true)"), '|', 'indexes are sound after concurrent inserts of the same keys');

# The same with kills.
for my $round (1 .. (defined $ENV{PG_LSM_KILLS} ? int($ENV{PG_LSM_KILLS} / 10) || 1 : 3))
{
	my $next_xid = 'pg_snapshot_xmax(pg_current_snapshot())::text::int8';
	my $enough = $node->safe_psql('postgres', "SELECT $next_xid + 500");
	$load = load_start($node, name => 'kill', clients => 4, seconds => 60, scripts => \@scripts);
	$node->poll_query_until('postgres', "SELECT $next_xid >= $enough") or die 'there is no load';
	kill_postmaster($node);
	load_stop($load);
	$node->start;
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'")
		foreach split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	is_unique($node, "indexes are sound after kill $round");
}

# An insert waits for a prepared transaction with the same key, also after a restart.
$node->safe_psql('postgres', "BEGIN; INSERT INTO t VALUES (5000, 5000, 1); PREPARE TRANSACTION 'held'");
$node->restart;
my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET lock_timeout = '200ms'; INSERT INTO t VALUES (5000, 5001, 1)");
like($stderr, qr/canceling statement due to lock timeout/, 'an insert waits for a prepared transaction with the same key');
$node->safe_psql('postgres', "COMMIT PREPARED 'held'");
($ret, $stdout, $stderr) = $node->psql('postgres', 'INSERT INTO t VALUES (5000, 5001, 1)');
like($stderr, qr/duplicate key value violates unique constraint "t_k".*Key \(k\)=\(5000\) already exists/s, 'after a restart and commit, the prepared row is a duplicate');

# A standby, before and after its promotion.
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('unique_standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$load = load_start($node, name => 'standby', clients => 3, seconds => 3, scripts => \@scripts);
load_stop($load);
catch_up($node, $standby);
is($standby->safe_psql('postgres', "SELECT lsm_check('t_k', true), lsm_check('t_s', true)"), '|', "the standby's indexes are sound and unique");
is_unique($standby, 'standby');
$node->stop('immediate');
$standby->promote;
($ret, $stdout, $stderr) = $standby->psql('postgres', 'INSERT INTO t VALUES (5000, 5001, 1)');
like($stderr, qr/duplicate key value/, 'the promoted standby rejects a duplicate key');
$load = load_start($standby, name => 'promoted', clients => 3, seconds => 2, scripts => \@scripts);
load_stop($load);
is_unique($standby, 'promoted');

# lsm_check finds a duplicate row.
$standby->safe_psql('postgres', q{
CREATE TABLE d (k int); CREATE INDEX d_k ON d USING lsm (k);
INSERT INTO d SELECT i % 90 FROM generate_series(1, 100) i;
UPDATE pg_index SET indisunique = true WHERE indexrelid = 'd_k'::regclass});
($ret, $stdout, $stderr) = $standby->psql('postgres', "SELECT lsm_check('d_k', true)");
like($stderr, qr/unique index "d_k" has two rows with the same key/, 'lsm_check reports duplicate keys');
$standby->stop;
done_testing();
