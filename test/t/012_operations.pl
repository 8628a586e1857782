# The statements of docs/operations.md and docs/monitoring.md that no other test covers: servers that must preload the
# library and do not, sizes under UPDATE and DELETE, prepared transactions, what to alert on, permissions, and the way
# back to a B-tree. The SQL comes from these pages.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pages = join '', map { slurp_file("$FindBin::RealBin/../../docs/$_.md") } qw(operations monitoring);

# The statements with this name on these pages.
sub statements
{
	my ($name) = @_;

	$pages =~ /<!-- run: \Q$name\E -->\n\n```sql\n(.*?)^```$/ms or die "the pages have no SQL named $name";
	return split /;\n/, $1;
}

# No tiny limits: the test needs an index like those of users.
my $node = new_node('primary', init => { allows_streaming => 1, has_archiving => 1 }, conf => "
$full
fsync = off
max_wal_size = 1GB
");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');

sub sql
{
	return $node->safe_psql('postgres', @_);
}

sub fails
{
	my ($query, $error, $name) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $query);

	isnt($ret, 0, "$name: CREATE INDEX is refused");
	like($err, $error, $name);
	return;
}

sub size
{
	return sql("SELECT pg_relation_size('$_[0]')");
}

# A start that must fail, and its log message. Then the line is added.
sub starts_only_with_library
{
	my ($server, $name) = @_;
	my $log_at = -e $server->logfile ? -s $server->logfile : 0;

	$server->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
	# A standby may be up for a moment before it replays the first record. Do not use $server->start: it ends all tests
	# if the server is gone when it looks for the process.
	local %ENV = $server->_get_env();
	if (system_log('pg_ctl', '--wait', '--pgdata', $server->data_dir, '--log', $server->logfile, 'start') == 0)
	{
		foreach (1 .. 300)
		{
			last unless -e $server->data_dir . '/postmaster.pid';
			sleep 0.1;
		}
		ok(!-e $server->data_dir . '/postmaster.pid', "$name: the server stops");
	}
	else
	{
		pass("$name: it does not start");
	}
	like(slurp_file($server->logfile, $log_at), qr/resource manager with ID 128 not registered/, "$name: the log names the missing resource manager");
	$server->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_lsm'");
	$server->start;
	return;
}

# 1. Preloading. A backup from before there was any index, and a standby made from it.
sql(q{
	CREATE TABLE events (device_id int, at timestamptz, value float8) WITH (autovacuum_enabled = off);
	CREATE TABLE b (k int);
});
$node->backup('before');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'before', has_streaming => 1);
$standby->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$standby->start;
catch_up($node, $standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM events'), 0, 'a standby without the library runs while there is no lsm index');
$standby->stop;
my $insert = q{INSERT INTO events SELECT hashint4(i) % 1000, timestamptz '2026-01-01' + i * interval '1 second', i FROM generate_series(1, 50000) i};
sql("CREATE INDEX events_lsm ON events USING lsm (device_id, at); $insert");
sql(q{SELECT pg_create_restore_point('loaded')});
starts_only_with_library($standby, 'standby');
catch_up($node, $standby);
check_clean($standby, 'the standby continues where it stopped', no_check => 1);

my $file = sql('SELECT pg_walfile_name(pg_switch_wal())');
$node->poll_query_until('postgres', "SELECT last_archived_wal >= '$file' FROM pg_stat_archiver") or die 'WAL is not archived';
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'before', has_restoring => 1, standby => 0);
$restored->append_conf('postgresql.conf', "archive_mode = off\nrecovery_target_name = 'loaded'\nrecovery_target_action = 'promote'");
starts_only_with_library($restored, 'the backup is restored');
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery did not end';
is($restored->safe_psql('postgres', 'SELECT count(*) FROM events'), 50000, 'the restored server has all rows');
check_clean($restored, 'indexes of the restored server are sound');
$restored->stop;

sql($insert);
$node->stop('immediate');
starts_only_with_library($node, 'after a crash');
check_clean($node, 'indexes are sound after a crash');

# A dump, restored into a server that gets the line later.
sql('CREATE TABLE pk (id int PRIMARY KEY WITH (lsm)); INSERT INTO pk SELECT generate_series(1, 1000)');
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('postgres') ], 'pg_dump');
my $target = new_node('target', conf => "fsync = off\n");
$target->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$target->start;
$target->command_checks_all([ 'psql', '-X', '-q', '-f', $dump, '-d', $target->connstr('postgres') ], 0, [],
	[qr/WARNING:.*pg_lsm.*ERROR:  pg_lsm must be loaded via shared_preload_libraries/s], 'restoring a dump without the library warns and creates no lsm index');
is($target->safe_psql('postgres', 'SELECT count(*) FROM events'), 100000, 'restoring a dump without the library restores the rows');
my ($constraint) = slurp_file($dump) =~ /^(ALTER TABLE ONLY public\.pk\n.*PRIMARY KEY.*;\n)/m;
like($constraint, qr/PRIMARY KEY \(id\) WITH \(lsm='true'\)/, 'a dump has the parameter of a primary key');
is($target->safe_psql('postgres', q{SELECT count(*), count(c.oid) FROM pk LEFT JOIN pg_constraint c ON conrelid = 'pk'::regclass AND contype = 'p'}),
	'1000|0', 'the table has its rows, and no key of another kind');
# In a session that has not loaded the library, core mistakes an lsm index for a B-tree.
$target->safe_psql('postgres', 'CREATE DATABASE bare');
$target->safe_psql('bare', 'CREATE TABLE pk (id int NOT NULL)');
my ($bare_ret, $bare_out, $bare_err) = $target->psql('bare', $constraint);
like($bare_err, qr/ERROR:  unrecognized parameter "lsm"/, 'without the library, creating a primary key fails with an error');
$target->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_lsm'");
$target->restart;

# The effect of the line in a database without the extension.
$target->safe_psql('bare', q{
	CREATE TABLE scattered AS SELECT hashint4(i) AS k, repeat('x', 400) FROM generate_series(1, 20000) i;
	CREATE INDEX scattered_k ON scattered (k);
	ANALYZE scattered});
my $scan = q{SET effective_io_concurrency = 128; SET random_page_cost = 10; SET enable_seqscan = off;
	EXPLAIN (COSTS OFF) SELECT * FROM scattered WHERE k > 1000000000 ORDER BY k};
unlike($target->safe_psql('bare', $scan), qr/Prefetch/, 'the library does not change plans with B-trees');
like($target->safe_psql('bare', "SET pg_lsm.enable_prefetch_scan = 'all'; $scan"), qr/Custom Scan \(Prefetch\).*Index Scan using scattered_k/s,
	'the prefetching scan works with B-trees in any database');
ok($target->poll_query_until('bare', q{SELECT string_agg(backend_type, ' ') = 'pg_lsm launcher' FROM pg_stat_activity WHERE backend_type LIKE 'pg\_lsm%'}),
	'the launcher runs, and no worker');
$target->safe_psql('postgres', 'DROP DATABASE bare');
$target->safe_psql('postgres', join '', slurp_file($dump) =~ /^CREATE INDEX .*USING lsm.*\n/gm, $constraint);
is(join(' ', indexes($target)), 'events_lsm pk_pkey', 'the indexes of the dump can be created afterwards');
check_clean($target, 'the indexes of the dump are sound');
$target->stop;
sql('DROP TABLE pk');

# 2. The size of the file.
my ($size) = statements('size');
like(sql($size), qr/^\d+\|\d+\|100000$/, 'the query for the size works');
sql('UPDATE events SET value = value + 1; VACUUM events') foreach 1 .. 5;
my $updated = size('events_lsm');
sql('SELECT lsm_compact(\'events_lsm\'); VACUUM events');
my $compacted = size('events_lsm');
check_clean($node, 'the index is sound after UPDATE of all rows');
sql('REINDEX INDEX CONCURRENTLY events_lsm');
my $reindexed = size('events_lsm');
note "file after UPDATEs $updated, compacted $compacted, from REINDEX $reindexed";
cmp_ok($updated, '<', 6 * $reindexed, 'the file stays small after five UPDATEs of all rows');
cmp_ok($compacted, '<=', $updated, 'lsm_compact does not make the file larger');

sql(q{
	CREATE TABLE kept (id bigint GENERATED ALWAYS AS IDENTITY, t text) WITH (autovacuum_enabled = off);
	CREATE INDEX kept_lsm ON kept USING lsm (id);
	INSERT INTO kept (t) SELECT 'x' FROM generate_series(1, 100000);
});
my $largest = 0;
foreach (1 .. 15)
{
	sql('INSERT INTO kept (t) SELECT \'x\' FROM generate_series(1, 10000)');
	sql('DELETE FROM kept WHERE id <= (SELECT min(id) FROM kept) + 9999');
	sql('VACUUM kept');
	$largest = size('kept_lsm') if size('kept_lsm') > $largest;
}
check_clean($node, 'the index is sound while rows come and go');
sql('REINDEX INDEX kept_lsm');
note "file with retention $largest, from REINDEX " . size('kept_lsm');
cmp_ok($largest, '<', 2 * size('kept_lsm'), 'the file stays small while rows come and go');

# After a mass delete, lsm_compact rewrites what VACUUM has thinned.
sql('DELETE FROM kept WHERE id % 2 = 0');
sql('VACUUM kept');
my $entries = sql('SELECT sum(bytes) FROM lsm_runs(\'kept_lsm\')');
sql('SELECT lsm_compact(\'kept_lsm\')');
cmp_ok(sql('SELECT sum(bytes) FROM lsm_runs(\'kept_lsm\')'), '<', 0.8 * $entries, 'lsm_compact rewrites runs from which VACUUM has removed many entries');
is(sql('SELECT count(*) FROM lsm_runs(\'kept_lsm\') WHERE state <> \'open\''), 1, 'lsm_compact leaves a single run');

# Functions that inspect B-trees reject an lsm index.
SKIP:
{
	skip 'there is no pgstattuple', 4 if sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pgstattuple'}) == 0;
	sql('CREATE EXTENSION pgstattuple');
	fails("SELECT * FROM $_('kept_lsm')", qr/is not supported|is not a btree index/, $_) foreach qw(pgstattuple pgstatindex);
	sql('DROP EXTENSION pgstattuple');
}

# 3. A queue: a query finds the first row without visiting all dead entries each time.
sql(q{
	CREATE TABLE queue (id bigint GENERATED ALWAYS AS IDENTITY, t text) WITH (autovacuum_enabled = off);
	CREATE INDEX queue_lsm ON queue USING lsm (id);
	INSERT INTO queue (t) SELECT 'x' FROM generate_series(1, 20000);
	DELETE FROM queue WHERE id <= 19900;
});
my $first = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT id FROM queue ORDER BY id LIMIT 1';
my $read = q{SELECT pg_stat_force_next_flush(); SELECT pg_stat_get_tuples_returned('queue_lsm'::regclass)};
is(sql($first), 19901, 'a query finds the first row after many dead entries');
sql($first);
my ($before) = sql($read) =~ /(\d+)$/;
is(sql($first), 19901, 'the query finds the first row again');
my ($after) = sql($read) =~ /(\d+)$/;
cmp_ok($after - $before, '<', 1000, 'the second query skips dead entries that scans have removed');

# 4. A prepared transaction that nobody finishes. The end of the file is free.
sql('INSERT INTO kept (t) SELECT \'x\' FROM generate_series(1, 100000)');
sql('SELECT lsm_compact(\'kept_lsm\')');
sql(q{BEGIN; INSERT INTO kept (t) VALUES ('prepared'); PREPARE TRANSACTION 'forgotten'});
my $long = size('kept_lsm');
sql('DELETE FROM kept WHERE id % 3 = 0');
sql('VACUUM kept');
cmp_ok(size('kept_lsm'), '<', $long, 'VACUUM truncates the file beside a prepared transaction');
my $held = sql('SELECT sum(entries) FROM lsm_runs(\'kept_lsm\')') - sql('SELECT count(*) FROM kept');
cmp_ok($held, '>', 1000, 'a prepared transaction keeps VACUUM from removing entries');
my ($prepared) = statements('prepared');
is(sql($prepared), '', 'the query leaves out young prepared transactions');
like(sql($prepared =~ s/1 hour/0/r), qr/^forgotten\|/, 'the query finds the prepared transaction');
fails("SET lock_timeout = '100ms'; $_ kept_lsm", qr/lock timeout/, "$_ waits for the prepared transaction") foreach ('REINDEX INDEX', 'DROP INDEX');
sql('SELECT lsm_compact(\'kept_lsm\')');
pass('lsm_compact does not wait');
$node->restart;
like(sql($prepared =~ s/1 hour/0/r), qr/^forgotten\|/, 'the prepared transaction survives a restart');
sql(q{ROLLBACK PREPARED 'forgotten'});
sql('VACUUM kept');
is(sql('SELECT sum(entries) FROM lsm_runs(\'kept_lsm\')'), sql('SELECT count(*) FROM kept'), 'VACUUM removes the entries once the transaction has ended');

# All free blocks precede blocks in use. So there is nothing to truncate, and VACUUM takes no lock that a standby would
# also have to take.
sql(q{
	CREATE EXTENSION pg_walinspect;
	CREATE TABLE gaps (k int) WITH (autovacuum_enabled = off);
	CREATE INDEX gaps_lsm ON gaps USING lsm (k);
	INSERT INTO gaps SELECT (random() * 1e9)::int FROM generate_series(1, 600000) i;
	INSERT INTO gaps SELECT (random() * 1e9)::int FROM generate_series(1, 600000) i;
	SELECT lsm_compact('gaps_lsm')});
sql('VACUUM gaps');
cmp_ok(size('gaps_lsm'), '>', 1.25 * sql(q{SELECT sum(bytes) FROM lsm_runs('gaps_lsm')}), 'a fifth of the file is free');
my $wal_start = $node->lsn('flush');
sql('VACUUM gaps');
sql('CREATE TABLE behind ()');
is(sql(sprintf q{SELECT count(*) FROM pg_get_wal_records_info('%s', '%s') WHERE resource_manager = 'Standby' AND record_type = 'LOCK'
		AND description LIKE '%%%% rel %d %%%%'}, $wal_start, $node->lsn('flush'), sql(q{SELECT 'gaps_lsm'::regclass::oid})), 0, 'VACUUM that cuts nothing logs no lock');

# On a standby, truncation conflicts with every user of the index.
sql(q{
	CREATE TABLE cut (k int) WITH (autovacuum_enabled = off);
	CREATE INDEX cut_lsm ON cut USING lsm (k);
	INSERT INTO cut SELECT i FROM generate_series(1, 100000) i;
	SELECT lsm_compact('cut_lsm')});
sql('VACUUM cut');
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->reload;
catch_up($node, $standby);
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
$reader->query_safe('BEGIN');
is($reader->query_safe('SELECT count(*) FROM cut WHERE k > 0'), 100000, 'a transaction on the standby has used the index');
sql('DELETE FROM cut WHERE k > 10');
sql('VACUUM (TRUNCATE off) cut');
# Segments in use move to the front.
sql("SELECT lsm_compact('cut_lsm')");
my $uncut = size('cut_lsm');
sql('ALTER TABLE cut SET (vacuum_truncate = off)');
sql('VACUUM cut');
is(size('cut_lsm'), $uncut, 'VACUUM does not truncate the file if that is disabled');
catch_up($node, $standby);
is($reader->query_safe('SELECT count(*) FROM cut WHERE k > 0'), 10, 'no query on the standby is canceled');
sql('ALTER TABLE cut RESET (vacuum_truncate)');
sql('VACUUM (TRUNCATE off) cut');
cmp_ok(size('cut_lsm'), '<', $uncut, 'VACUUM truncates the file');
catch_up($node, $standby);
is($standby->safe_psql('postgres', q{SELECT confl_lock > 0, confl_snapshot FROM pg_stat_database_conflicts WHERE datname = 'postgres'}),
	't|0', 'truncation cancels the query on the standby');
eval { $reader->quit };

# 5. What to alert on. Many large batches, first without a worker to merge them, then with one.
my ($alerts) = statements('alerts');
my $found = sub { return sql("SELECT * FROM ($alerts) q WHERE index = 'events_lsm'::regclass") };
sql('CREATE ROLE watcher IN ROLE pg_monitor; CREATE ROLE alice; GRANT CREATE ON SCHEMA public TO alice');
like(sql("SET ROLE watcher; $alerts"), qr/^events_lsm\|/m, 'members of pg_monitor can run the query');
like($found->(), qr/\|f\|f$/, 'the query reports a healthy index as healthy');
# Indexes that the query cannot or may not read do not stop it: another session's temporary index, a locked one, another
# owner's.
sql('CREATE UNLOGGED TABLE unlogged (k int); CREATE INDEX unlogged_k ON unlogged USING lsm (k); INSERT INTO unlogged SELECT generate_series(1, 1000)');
my $other = $node->background_psql('postgres');
$other->query_safe('CREATE TEMP TABLE mine (k int); CREATE INDEX mine_k ON mine USING lsm (k); INSERT INTO mine SELECT generate_series(1, 1000)');
$other->query_safe('BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE; LOCK TABLE unlogged IN ACCESS EXCLUSIVE MODE');
my $limited = "SET statement_timeout = '20s'; $alerts";
like(sql("SET ROLE watcher; $limited"), qr/^pg_temp_\d+\.mine_k\|\|0\|0\|f\|f$/m, 'the query works beside temporary and locked indexes of others');
like(sql("SET ROLE alice; $limited"), qr/^events_lsm\|/m, 'the query works for a user who owns no index');
$other->query_safe('COMMIT');
$other->quit;
sql($insert);
like($found->(), qr/^events_lsm\|@{[ sql(q{SELECT count(*) FROM lsm_runs('events_lsm')}) ]}\|/, 'the number of runs equals that of lsm_runs');
catch_up($node, $standby);
like($standby->safe_psql('postgres', $alerts), qr/^unlogged_k\|\|0\|0\|f\|f$/m, 'the query works on a standby with an unlogged index');
# Only the writers merge, in steps. Unfinished work stays when they stop.
foreach (1 .. 100)
{
	last if $found->() =~ /\|t$/;
	sql(q{SET pg_lsm.debug_foreground_blocks = 0; SET pg_lsm.debug_merge_fanout = 4;
		INSERT INTO events SELECT hashint4(i), now(), i FROM generate_series(1, 5000) i});
}
like($found->(), qr/\|t$/, 'the query reports debt that nobody merges') or diag($found->());
like(sql("SET ROLE watcher; $alerts"), qr/^events_lsm\|.*\|t$/m, 'members of pg_monitor see the debt that nobody merges');
# The time that this costs the writers is counted.
my $throttled = sub { return sql(q{SELECT throttled_time FROM pg_stat_lsm_indexes WHERE indexrelname = 'events_lsm'}) };
foreach (1 .. 100)
{
	last if $throttled->() > 0;
	sql(q{SET pg_lsm.debug_foreground_blocks = 0; SET pg_lsm.debug_merge_fanout = 4;
		INSERT INTO events SELECT hashint4(i), now(), i FROM generate_series(1, 5000) i});
}
cmp_ok($throttled->(), '>', 0, 'throttled_time counts the merging that writers do');
$node->append_conf('postgresql.conf', "pg_lsm.max_workers = 2\npg_lsm.idle_delay = '200ms'");
$node->reload;
sql('INSERT INTO events SELECT i, now(), i FROM generate_series(1, 5000) i');
ok($node->poll_query_until('postgres', q{SELECT debt_bytes = 0 FROM pg_stat_lsm_indexes WHERE indexrelname = 'events_lsm'}), 'workers merge what is due');
ok($node->poll_query_until('postgres', "SELECT NOT too_many_runs AND NOT nobody_merges FROM ($alerts) q WHERE index = 'events_lsm'::regclass"),
	'the query reports the index as healthy again');
check_clean($node, 'the index is sound after the merges');

# 6. Permissions.
sql(q{SET ROLE alice; CREATE TABLE a (k int); CREATE INDEX a_k ON a USING lsm (k)});
is(sql(q{SET ROLE alice; SET pg_lsm.batch_inserts = off; SHOW pg_lsm.batch_inserts}), 'off', 'any user can turn batches off');
my $of_context = sub { return sql(qq{SELECT name FROM pg_settings WHERE name LIKE 'pg\\_lsm.%' AND context = '$_[0]' ORDER BY name COLLATE "C"}) };
is($of_context->('user'), join("\n", map { "pg_lsm.$_" } (qw(batch_inserts default_method enable_prefetch_scan),
		$node->pg_version->major >= 18 ? 'explain_reads' : (), 'prefetch_depth')),
	'ordinary users can set exactly these settings');
is($of_context->('sighup'), "pg_lsm.idle_delay\npg_lsm.max_workers", 'only the configuration sets the settings of the workers');
is($of_context->('superuser'), '', 'the settings for tests are not shown');
fails("SET ROLE alice; SET $_ = 5", qr/permission denied to set parameter "\Q$_\E"/, "$_ is refused to ordinary users")
  foreach map { "pg_lsm.debug_$_" }
  qw(batch_entries batch_min_entries buffer_entries foreground_blocks merge_fanout open_pages page_entries prefetch_scan segment_size);
fails("SET $_ = 5", qr/cannot be changed now/, "$_ cannot be set in a session") foreach qw(pg_lsm.max_workers pg_lsm.idle_delay);
sql('GRANT SET ON PARAMETER pg_lsm.debug_merge_fanout TO alice');
is(sql('SET ROLE alice; SET pg_lsm.debug_merge_fanout = 5; SHOW pg_lsm.debug_merge_fanout'), '5', 'an ordinary user can change a test setting after GRANT SET');
sql(q{SET ROLE alice; ALTER INDEX a_k SET (merge_fanout = 4); SELECT lsm_compact('a_k'), lsm_check('a_k', true), count(*) FROM lsm_runs('a_k')});
pass('an owner can alter, compact, check and inspect the index');
fails("SET ROLE alice; SELECT $_", qr/must be owner of index events_lsm|permission denied/, "$_ is refused for another owner's index")
  foreach ("lsm_compact('events_lsm')", "lsm_check('events_lsm')", "count(*) FROM lsm_runs('events_lsm')");
fails('SET ROLE alice; ALTER INDEX events_lsm SET (merge_fanout = 4)', qr/must be owner of index events_lsm/, 'ALTER INDEX of another\'s index');
sql(q{SET ROLE watcher; SELECT count(*) FROM lsm_runs('a_k')});
sql(q{RESET ROLE; CREATE ROLE reader IN ROLE pg_stat_scan_tables; SET ROLE reader; SELECT count(*) FROM lsm_runs('a_k')});
cmp_ok(sql('SET ROLE alice; SELECT count(*) FROM pg_stat_lsm_indexes'), '>', 2, 'any user sees the counters');
fails('SET ROLE alice; SELECT lsm_stat_reset()', qr/permission denied/, 'lsm_stat_reset is refused to ordinary users');
sql('GRANT EXECUTE ON FUNCTION lsm_stat_reset TO alice; SET ROLE alice; SELECT lsm_stat_reset()');

# 7. Partitions by time.
sql(q{
	CREATE TABLE p (at date, k int) PARTITION BY RANGE (at);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
	CREATE INDEX p_k ON p USING lsm (k);
	INSERT INTO p SELECT date '2026-01-01' + i % 59, i FROM generate_series(1, 1000) i;
});
my $path = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('p1_k_idx')});
sql('DROP TABLE p1; CHECKPOINT');
ok(!-e $path || -s $path == 0, 'dropping a partition removes the index file');

# 8. Back to a B-tree.
my $rows = 'SET enable_seqscan = off; SELECT count(*), sum(value) FROM events WHERE device_id BETWEEN 1 AND 50';
my $want = sql($rows);
sql($_) foreach statements('back');
is(sql($rows), $want, 'the B-tree returns the same rows');
like(sql("SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN SELECT FROM events WHERE device_id = 1"), qr/using events_lsm/, 'the planner uses the B-tree');
is(sql("SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'events_lsm'::regclass"), 'btree', 'the index is now a B-tree');
sql('CREATE TABLE e (k int, CONSTRAINT e_k EXCLUDE USING lsm (k WITH =)); INSERT INTO e SELECT generate_series(1, 100)');
like(sql(statements('left')), qr/^e\|e_k\|e_k$/m, 'the query finds remaining lsm indexes');
fails('DROP EXTENSION pg_lsm', qr/index kept_lsm.*depends on/, 'DROP EXTENSION names the indexes that are left');
sql(q{ALTER TABLE e DROP CONSTRAINT e_k; ALTER TABLE e ADD CONSTRAINT e_k EXCLUDE USING btree (k WITH =);
	DROP TABLE unlogged; DROP INDEX kept_lsm; DROP INDEX queue_lsm; DROP INDEX cut_lsm; DROP INDEX gaps_lsm; DROP INDEX p_k; DROP INDEX a_k; DROP EXTENSION pg_lsm; CHECKPOINT});
fails('INSERT INTO e VALUES (5)', qr/conflicting key value violates exclusion constraint/, 'the constraint still rejects duplicates');
catch_up($node, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
foreach my $server ($standby, $node)
{
	$server->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
	$server->restart;
	is($server->safe_psql('postgres', $rows), $want, $server->name . ' runs without the library');
}
sql('INSERT INTO events VALUES (1, now(), 1)');
catch_up($node, $standby);
$standby->stop;
$node->stop;
done_testing();
