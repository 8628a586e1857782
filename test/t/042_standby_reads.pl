# Reads on two streaming standbys, as docs/standby-reads.md describes them: libpq chooses a standby, commits wait until
# the standbys show their rows, and queries go on while a standby is promoted.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off';
my $primary = start_new_node('primary');
$primary->safe_psql('postgres', q{
	CREATE TABLE t (k int PRIMARY KEY WITH (lsm = true), v int);
	CREATE INDEX t_v ON t USING lsm (v);
	INSERT INTO t SELECT i, i % 100 FROM generate_series(1, 1000) i;
});
$primary->backup('base');
my @standbys = map {
	my $standby = PostgreSQL::Test::Cluster->new("standby$_");

	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	# Queries never delay replay. Every conflict cancels a query.
	$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 0\nhot_standby_feedback = off\n");
	$standby->start;
	$standby } 1, 2;
catch_up($primary, $_) foreach @standbys;

# Runs a query on the server that libpq chooses. Returns the answer, or the error.
sub ask
{
	my ($attributes, $query) = @_;
	my @servers = ($primary, @standbys);
	my $conninfo = 'host=' . join(',', map { $_->host } @servers) . ' port=' . join(',', map { $_->port } @servers) .
	  " dbname=postgres target_session_attrs=$attributes";
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-d', $conninfo, '-c', $query ], '>', \$out, '2>', \$err) or return $err;
	chomp $out;
	return $out;
}

is(ask('prefer-standby', 'SELECT pg_is_in_recovery()'), 't', 'libpq prefers a standby to the primary');
is(ask('primary', 'SELECT pg_is_in_recovery()'), 'f', 'libpq finds the primary');
is(ask('prefer-standby', "$by_index; SELECT count(*) FROM t WHERE v = 7"), '10', 'the standby reads the index');
# A VACUUM on the primary cancels no index-only scan. The scan leaves the gate at its next entry.
$primary->safe_psql('postgres', q{
	CREATE TABLE g (k int) WITH (autovacuum_enabled = off);
	CREATE INDEX g_k ON g USING lsm (k);
	INSERT INTO g SELECT generate_series(1, 20000)});
$primary->safe_psql('postgres', 'VACUUM g');
$primary->safe_psql('postgres', 'BEGIN; INSERT INTO g SELECT generate_series(30001, 31000); ROLLBACK');
catch_up($primary, $standbys[0]);
my $scan = $standbys[0]->background_psql('postgres', on_error_stop => 0);
$scan->query_until(qr/begun/, "\\echo begun\n$by_index; SET max_parallel_workers_per_gather = 0;\n"
	. "SELECT 'scanned', count(*) FROM g WHERE k BETWEEN 1 AND 20000 AND pg_sleep(0.0002) IS NOT NULL;\n\\echo done\n");
$standbys[0]->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%scanned%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()})
  or die 'the scan did not begin';
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) g');
catch_up($primary, $standbys[0]);
like($scan->query_until(qr/done/, ''), qr/scanned\|20000/, 'replay of VACUUM cancels no index-only scan, even if conflicts cancel queries at once');
$scan->quit;
$primary->safe_psql('postgres', 'DROP TABLE g');

$standbys[0]->stop;
is(ask('prefer-standby', "SELECT pg_is_in_recovery(), current_setting('port')"), 't|' . $standbys[1]->port, 'libpq chooses the remaining standby');
$standbys[0]->start;

# A commit waits until the standbys show its rows, while other sessions load and merges run.
change_settings($primary, synchronous_standby_names => 'FIRST 2 (standby1, standby2)', synchronous_commit => 'remote_apply');
$primary->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_stat_replication WHERE sync_state = 'sync'}) or die 'no synchronous standbys';
my $load = load_start($primary, name => 'load', clients => 2, seconds => 2, options => '-c synchronous_commit=local',
	scripts => [ [ 1, "\\set k random(0, 100)\nINSERT INTO t SELECT nextval('s'), (:k * i) % 100 FROM generate_series(1, 20) i;\n" ] ])
  if $primary->safe_psql('postgres', 'CREATE SEQUENCE s START 1000000') eq '';
my @readers = map { $_->background_psql('postgres') } @standbys;
my $writer = $primary->background_psql('postgres');
my $found = '';
$_->query_safe($by_index) foreach @readers;
foreach my $k (2001 .. 2100)
{
	$writer->query_safe("INSERT INTO t VALUES ($k, $k)");
	$found .= $_->query_safe("SELECT count(*) FROM t WHERE k = $k") . $_->query_safe("SELECT count(*) FROM t WHERE v = $k") foreach @readers;
}
is($found, '1' x 400, 'with remote_apply, both standbys show each row as soon as its commit returns');
unlike(load_stop($load), qr/ERROR|aborted/, 'the load has no errors');

# A standby that has paused replay delays commits with remote_apply, and no others.
$standbys[0]->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standbys[0]->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'});
$writer->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (3001, 3001);\n");
ok($primary->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}), 'the commit waits for the standby');
$primary->safe_psql('postgres', q{SET synchronous_commit = local; INSERT INTO t VALUES (3002, 3002)});
$standbys[0]->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
is($writer->query_safe('SELECT count(*) FROM t WHERE k IN (3001, 3002)'), 2, 'the commit returns when the standby resumes replay');
is($readers[0]->query_safe('SELECT count(*) FROM t WHERE k = 3001'), 1, 'the standby shows its row');
$writer->quit;
change_settings($primary, synchronous_standby_names => '', synchronous_commit => 'on');
catch_up($primary, $_) foreach @standbys;

# Cursors stay open on both standbys while the first one is promoted and the other one follows it.
my $query = 'SELECT v FROM t ORDER BY v, k';
my @expected = split /\n/, $primary->safe_psql('postgres', $query);
foreach my $reader (@readers)
{
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$reader->query_safe("DECLARE c CURSOR FOR SELECT v FROM t ORDER BY v");
	is(join(' ', split /\n/, $reader->query_safe('FETCH 50 FROM c')), "@expected[0 .. 49]", 'a cursor on a standby is open');
}
$primary->stop;
$standbys[0]->promote;
my $new = $standbys[0]->connstr . ' application_name=standby2';
$standbys[1]->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = '" . $new =~ s/'/''/gr . "'");
$standbys[1]->safe_psql('postgres', 'SELECT pg_reload_conf()');
$standbys[0]->safe_psql('postgres', 'INSERT INTO t SELECT i, i % 100 FROM generate_series(5001, 8000) i');
$standbys[0]->safe_psql('postgres', q{SELECT lsm_compact('t_v'), lsm_compact('t_pkey')});
flush_wal($standbys[0]);
ok($standbys[1]->poll_query_until('postgres', 'SELECT count(*) = 3000 FROM t WHERE k BETWEEN 5001 AND 8000'), 'the other standby follows the promoted one');
foreach my $reader (@readers)
{
	is(join(' ', split /\n/, $reader->query_safe('FETCH ALL FROM c')), "@expected[50 .. $#expected]", 'the cursor returns the rows of its snapshot after the promotion');
}
is($readers[0]->query_safe('SHOW transaction_read_only'), 'on', 'the transaction that began on the standby remains read-only');
$_->query_safe('COMMIT') foreach @readers;
is($readers[0]->query_safe('SHOW transaction_read_only'), 'off', 'the next transaction of the session may write');
is($readers[1]->query_safe('SHOW transaction_read_only'), 'on', 'the session on the other standby may not');
is(ask('primary', "SELECT current_setting('port')"), $standbys[0]->port, 'libpq finds the new primary');
is($_->safe_psql('postgres', 'SELECT sum(confl_tablespace + confl_lock + confl_snapshot + confl_bufferpin + confl_deadlock) FROM pg_stat_database_conflicts'),
	0, 'no query was cancelled on ' . $_->name) foreach @standbys;
check_clean($_, 'indexes are sound on ' . $_->name) foreach @standbys;
$_->quit foreach @readers;
$_->stop foreach reverse @standbys;
done_testing();
