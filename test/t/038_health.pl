# lsm_health and the log report what needs attention and nothing else, and only to users who may see it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_new_node('primary', conf => "shared_buffers = 1MB\npg_lsm.max_workers = 2\npg_lsm.idle_delay = -1\n");
my $health = 'SELECT index, problem FROM lsm_health()';

sub sql
{
	return $node->safe_psql('postgres', @_);
}

# Waits until lsm_health returns these rows.
sub reports
{
	my ($expected, $name) = @_;

	ok($node->poll_query_until('postgres', "SELECT coalesce(string_agg(index::text || ' ' || problem, ', ' ORDER BY index::text), '') FROM lsm_health()", $expected),
		$name) or diag(sql('SELECT * FROM lsm_health()'));
	return;
}

# The lines of the log since a position that match.
sub logged
{
	my ($at, $pattern) = @_;

	return scalar(() = slurp_file($node->logfile, $at) =~ /$pattern/g);
}

# 1. A sound database.
sql(q{CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE watcher IN ROLE pg_monitor; GRANT CREATE ON SCHEMA public TO alice;
	SET ROLE alice;
	CREATE TABLE t (k int, s text);
	INSERT INTO t SELECT hashint4(i), 'x' FROM generate_series(1, 1000) i;
	CREATE INDEX t_k ON t USING lsm (k)});
is(sql($health), '', 'a sound database: nothing is reported');
sql(q{CREATE TEMP TABLE mine (k int); CREATE INDEX mine_k ON mine USING lsm (k); INSERT INTO mine VALUES (1); SELECT * FROM lsm_health()});

# 2. Invalid indexes, and who sees them.
$node->psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY t_s ON t USING lsm (s)');
is(sql($health), 't_s|invalid', 'an invalid index is reported');
is(sql("SET ROLE $_; $health"), 't_s|invalid', "an invalid index is reported to $_") foreach qw(alice watcher);
is(sql("SET ROLE bob; $health"), '', 'other users do not see the invalid index');
is(sql(q{SELECT action FROM lsm_health()}), 'REINDEX INDEX CONCURRENTLY public.t_s', 'the action for an invalid index is REINDEX');
sql('UPDATE t SET s = k');
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action repairs the invalid index');
sql('DROP INDEX t_s');
sql(q{CREATE TABLE apart (k int, CONSTRAINT apart_k EXCLUDE USING lsm (k WITH =)); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'apart_k'::regclass});
is(sql(q{SELECT action FROM lsm_health()}), 'REINDEX INDEX public.apart_k', 'an exclusion constraint cannot be rebuilt CONCURRENTLY');
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action repairs the exclusion constraint');
sql('DROP TABLE apart');

# A key that a tool has built for a child table from the definition of the parent's key, which does not name the method.
sql(q{CREATE TABLE ledger (k int, CONSTRAINT ledger_key UNIQUE (k) WITH (lsm)); CREATE TABLE chunk () INHERITS (ledger);
	ALTER TABLE ledger OWNER TO alice; ALTER TABLE chunk OWNER TO alice});
is(sql($health), '', 'a child table without the key is not reported');
sql(sql(q{SELECT 'ALTER TABLE chunk ADD CONSTRAINT chunk_key ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'ledger_key'}));
is(sql("SET ROLE $_; $health"), 'chunk_key|key is a B-tree', "a key that has lost the method is reported to $_") foreach qw(alice watcher);
is(sql("SET ROLE bob; $health"), '', 'other users do not see the key');
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action gives the key the method');
sql('DROP TABLE ledger CASCADE');

# What lsm_convert leaves if it is interrupted, even if a REINDEX of the table has made it valid, and of either method.
sql(q{CREATE INDEX kept ON t (k)});
my $name = 'lsm_convert_' . sql(q{SELECT 'kept'::regclass::oid}) . '_old';
sql("ALTER INDEX kept RENAME TO $name");
is(sql('SELECT index, problem, action FROM lsm_health()'), "$name|left over|DROP INDEX CONCURRENTLY public.$name", 'a valid leftover is reported');
sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = '$name'::regclass");
is(sql($health), "$name|left over", 'an invalid leftover is reported');
is(sql("SET ROLE bob; $health"), '', 'other users do not see the leftover');
my $call = $node->background_psql('postgres');
$call->query_safe('BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE');
is(sql($health), '', 'while lsm_convert may run, its indexes are not reported');
$call->quit;
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action drops the leftover');

# 3. A damaged index and a locked one do not hide others.
sql(q{CREATE TABLE broken (k int); CREATE INDEX broken_k ON broken USING lsm (k); INSERT INTO broken SELECT generate_series(1, 1000)});
my $file = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('broken_k')");
$node->stop;
my $meta = page_read($file, 0);
page_write($file, 0, "\0" x 8192);
$node->start;
is(sql($health), 'broken_k|unreadable', 'a damaged index is reported');
my $lock = $node->background_psql('postgres');
$lock->query_safe('BEGIN; LOCK TABLE t');
is(sql("SET statement_timeout = '20s'; $health"), 'broken_k|unreadable', 'a locked table does not hide a damaged index');
$lock->query_safe('COMMIT');
$lock->quit;
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action repairs the damaged index');
sql('DROP TABLE broken');

# 4. Filters. With the tiny limits, few rows fill many pages. A single row goes to the write buffer, so there is more
# than one run.
sql(q{CREATE TABLE f (b tsvector); CREATE INDEX f_b ON f USING lsm (b);
	INSERT INTO f SELECT ('w' || i)::tsvector FROM generate_series(1, 3000) i; INSERT INTO f VALUES ('')});
reports('f_b no filters', 'an index without filters is reported: a type without a hash');
is(sql('SELECT action FROM lsm_health()'), 'ALTER INDEX public.f_b SET (merge_fanout = 4)', 'the action without a hash is a lower fanout');
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action helps without a hash');
sql(q{DROP TABLE f; CREATE TABLE f (a bigint); CREATE INDEX f_a ON f USING lsm (a) WITH (filter_bits = 0);
	INSERT INTO f SELECT i FROM generate_series(1, 3000) i; INSERT INTO f VALUES (0)});
reports('f_a no filters', 'an index without filters is reported: filters are off');
sql($_) foreach split /; /, sql('SELECT action FROM lsm_health()');
sql('INSERT INTO f VALUES (0)');
is(sql($health), '', 'the action turns filters on');
sql('DROP TABLE f');

# 5. A file much larger than its contents.
sql(q{CREATE TABLE large (k uuid); CREATE INDEX large_k ON large USING lsm (k)});
$file = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('large_k')");
truncate($file, 80 << 20) or die "$file: $!";
is(sql($health), 'large_k|file too large', 'a large file is reported');
sql(sql('SELECT action FROM lsm_health()'));
is(sql($health), '', 'the action rebuilds the large file');
sql('DROP TABLE large');

# 6. A collation that the system has changed.
sql(q{CREATE TABLE c (s text COLLATE "und-x-icu"); CREATE INDEX c_s ON c USING lsm (s)});
my $collation = sql(q{SELECT oid FROM pg_collation WHERE collname = 'und-x-icu'});
sql("UPDATE pg_collation SET collversion = '0' WHERE oid = $collation");
like(sql(q{SELECT index, problem, action FROM lsm_health()}), qr/^c_s\|collation changed\|REINDEX INDEX CONCURRENTLY public\.c_s;.*ALTER COLLATION .*und-x-icu.* REFRESH VERSION$/,
	'a changed collation is reported');
sql('DROP TABLE c; ALTER COLLATION "und-x-icu" REFRESH VERSION');

# 7. Merges fail.
sql(q{
	CREATE FUNCTION bad_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF current_setting('application_name') = 'pg_lsm worker' THEN RAISE 'this operator class is broken'; END IF;
		RETURN btint4cmp(a, b);
	END $$;
	CREATE OPERATOR CLASS bad_ops FOR TYPE int USING lsm AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 bad_cmp(int, int);
	CREATE TABLE b (k int); CREATE INDEX b_k ON b USING lsm (k bad_ops)});
my $at = -s $node->logfile;
sql('INSERT INTO b SELECT (random() * 1000)::int FROM generate_series(1, 1000)');
reports('b_k merges fail', 'failing merges are reported');
sleep 4;
is(logged($at, qr/LOG:  could not merge index "public.b_k"/), 1, 'failing merges are logged once');
like(slurp_file($node->logfile, $at), qr/DETAIL:  Attempts that have failed since a worker last finished all merges: 1\..*HINT:  Remove the cause\. A worker tries again in 1 s/s, 'in words');
sql('DROP TABLE b');

# 8. Writers lose time. A single worker compares slowly.
change_settings($node, 'pg_lsm.max_workers' => 1);
sql(q{
	CREATE FUNCTION slow_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF current_setting('application_name') = 'pg_lsm worker' THEN PERFORM pg_sleep(0.05); END IF;
		RETURN btint4cmp(a, b);
	END $$;
	CREATE OPERATOR CLASS slow_ops FOR TYPE int USING lsm AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 slow_cmp(int, int);
	CREATE TABLE s (k int); CREATE INDEX s_k ON s USING lsm (k slow_ops)});
$at = -s $node->logfile;
foreach (1 .. 100)
{
	sql(q{SET pg_lsm.debug_foreground_blocks = 0; INSERT INTO s SELECT (random() * 1000)::int FROM generate_series(1, 1000)});
	last if logged($at, qr/LOG:  merges/);
}
is(logged($at, qr/LOG:  merges of index "public.s_k" are late\n.*DETAIL:  Merges cost writers \d{4,} ms within a minute\. The index has \d+ runs, and \d+ kB wait/), 1,
	'late merges are logged once');
like(sql('SELECT index, problem, action FROM lsm_health()'), qr/^s_k\|merges are late\|ALTER SYSTEM SET pg_lsm.max_workers = 3;/, 'late merges are reported with an action');
sql(q{SET pg_lsm.debug_foreground_blocks = 0; INSERT INTO s SELECT (random() * 1000)::int FROM generate_series(1, 1000)});
is(logged($at, qr/LOG:  merges/), 1, 'late merges are not logged again');
sql('DROP TABLE s');

# 9. No worker. The writers merge, in steps, and leave unfinished work when they stop.
# One of the two processes is the launcher of logical replication.
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->restart;
$at = -s $node->logfile;
foreach (1 .. 100)
{
	sql(q{SET pg_lsm.debug_foreground_blocks = 0; INSERT INTO t SELECT hashint4(i), 'x' FROM generate_series(1, 500) i});
	last if sql($health) ne '';
}
is(sql($health), 't_k|no worker', 'workers that cannot start are reported');
like(sql('SELECT action FROM lsm_health()'), qr/^ALTER SYSTEM SET max_worker_processes = 10, and restart/, 'the action for missing workers is to raise max_worker_processes');
$node->wait_for_log(qr/LOG:  could not start a pg_lsm worker for the database with OID \d+\n.*DETAIL:  All background worker processes are in use/, $at);
sql(q{SET pg_lsm.debug_foreground_blocks = 0; INSERT INTO t SELECT hashint4(i), 'x' FROM generate_series(1, 500) i}) foreach 1 .. 3;
sleep 3;
is(logged($at, qr/LOG:  could not start/), 1, 'missing workers are logged once');

# 10. The server.
change_settings($node, 'pg_lsm.max_workers' => 0);
ok($node->poll_query_until('postgres', "SELECT bool_or(index IS NULL AND problem = 'no workers allowed') FROM lsm_health()"), 'pg_lsm.max_workers = 0 is reported');
change_settings($node, 'pg_lsm.max_workers' => 2);
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
is(sql($health), '|launcher not running', 'a missing launcher is reported');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
sql('CREATE UNLOGGED TABLE u (k int); CREATE INDEX u_k ON u USING lsm (k)');
sql('CREATE TABLE twice (k int); INSERT INTO twice VALUES (1), (1)');
$node->psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY twice_k ON twice USING lsm (k)');
is(sql($health), 'twice_k|invalid', 'the primary reports an invalid index');
catch_up($node, $standby);
is($standby->safe_psql('postgres', $health), '', 'nothing is reported on a standby with an unlogged index, and one that may be under construction');
$standby->stop;
sql('DROP TABLE twice');
sql('VACUUM t');
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
is(sql($health), '|library not preloaded', 'a library that is not preloaded is reported');
is(sql("SET ROLE alice; $health"), '|library not preloaded', 'owners see that the library is not preloaded');
$node->stop;
done_testing();
