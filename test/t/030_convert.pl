# lsm_convert while a table is in use. Killed at each step, it leaves the table with its key, and the same call finishes
# the conversion. Under a load of four clients, conversions in both directions make no statement
# fail or wait for long. Foreign keys move along.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('convert', conf => "restart_after_crash = on\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

sub sql
{
	return $node->safe_psql('postgres', @_);
}

sub method_of
{
	my ($index) = @_;

	return sql("SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = '$index'::regclass");
}

# Everything about a table's indexes that a conversion must keep. No copies may be left.
sub facts
{
	my ($table) = @_;

	return sql("
		SELECT c.relname, indisunique, indisprimary, indisreplident, indisclustered, indisvalid,
			k.conname, k.contype, obj_description(c.oid, 'pg_class'), obj_description(k.oid, 'pg_constraint')
		FROM pg_index i JOIN pg_class c ON c.oid = indexrelid
			LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid
		WHERE indrelid = '$table'::regclass ORDER BY 1");
}

sub fill
{
	sql("
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL, CONSTRAINT t_v UNIQUE (v));
		COMMENT ON INDEX t_pkey IS 'index'; COMMENT ON CONSTRAINT t_pkey ON t IS 'constraint';
		ALTER TABLE t REPLICA IDENTITY USING INDEX t_v;
		ALTER TABLE t CLUSTER ON t_pkey;
		CREATE INDEX t_plain ON t (v, id);
		INSERT INTO t SELECT i, i FROM generate_series(1, 3000) i");
	return;
}

# --- dry_run ----------------------------------------------------------------------------------------------------------

fill();
my ($ret, $out, $err) = $node->psql('postgres', "CALL lsm_convert('t_pkey', dry_run => true)");
like($err, qr/NOTICE:  CREATE UNIQUE INDEX CONCURRENTLY lsm_convert_\d+ ON public\.t USING lsm \(id\) WITH \(lsm = true\)\n.*NOTICE:  SELECT .*\n.*NOTICE:  DROP INDEX/,
	'dry_run shows the statements');
is(method_of('t_pkey'), 'btree', 'dry_run does not convert the index');

# --- crashes ----------------------------------------------------------------------------------------------------------

# The key must refuse a duplicate, whatever its method is.
sub check_key
{
	my ($name) = @_;

	($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO t VALUES (7, -7)');
	like($err, qr/violates unique constraint/, "$name: the table's key rejects a duplicate");
	return;
}

my $has_stop_points = ($node->psql('postgres', "LOAD 'pg_lsm'; SHOW pg_lsm.debug_stop_at"))[0] == 0;
my $before = facts('t');

SKIP:
{
	skip 'pg_lsm was built without stop points', 1 unless $has_stop_points;
	foreach my $index ('t_pkey', 't_plain')
	{
		foreach my $method ('lsm', 'btree')
		{
			foreach my $point ('convert-build', 'convert-swap', 'convert-swapped', 'convert-drop')
			{
				my $name = "$index to $method, $point";
				my $back = $method eq 'lsm' ? 'btree' : 'lsm';
				my $old = checkpointer($node);

				($ret, $out, $err) = $node->psql('postgres', "SET pg_lsm.debug_stop_at = '$point:crash'; CALL lsm_convert('$index', '$method')");
				isnt($ret, 0, "$name: the server crashes");
				wait_for_restart($node, $old);
				check_key($name);
				sql('UPDATE t SET v = -v WHERE id % 10 = 0');
				sql("CALL lsm_convert('$index', '$method')");
				is(method_of($index), $method, "$name: the same call completes the conversion");
				is(facts('t'), $before, "$name: all indexes, constraints and comments are kept, and no copies are left");
				sql("SELECT lsm_check('$index', true)") if $method eq 'lsm';
				sql("CALL lsm_convert('$index', '$back')") if $point ne 'convert-drop';
			}
		}
	}
}

# Killed within CREATE INDEX CONCURRENTLY and DROP INDEX CONCURRENTLY, which wait for a transaction.
foreach my $method ('lsm', 'btree')
{
	my $blocker = $node->background_psql('postgres');

	$blocker->query_safe('BEGIN; INSERT INTO t VALUES (100000, 100000)');
	my $call = $node->background_psql('postgres', on_error_stop => 0);
	$call->query_until(qr/start/, "\\echo start\nCALL lsm_convert('t_pkey', '$method');\n");
	$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query ~ '^CALL lsm' AND wait_event_type = 'Lock')")
	  or die 'lsm_convert did not wait';
	sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^CALL lsm'");
	$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE query ~ '^CALL lsm')");
	eval { $call->quit };
	check_key("terminated while building for $method");
	$blocker->query_safe('ROLLBACK');
	$blocker->quit;
	sql("CALL lsm_convert('t_pkey', '$method')");
	is(facts('t'), $before, "terminated while building for $method: the same call completes the conversion");
}

# --- a second call, and other sessions --------------------------------------------------------------------------------

# Two calls for one table run one after the other.
{
	my $blocker = $node->background_psql('postgres');
	my @calls = map { $node->background_psql('postgres') } 0 .. 1;

	$blocker->query_safe('BEGIN; INSERT INTO t VALUES (100000, 100000)');
	$calls[$_]->query_until(qr/start/, "\\echo start\nCALL lsm_convert('" . ('t_pkey', 't_v')[$_] . "');\n") foreach 0 .. 1;
	$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE query ~ '^CALL lsm' AND wait_event_type = 'Lock'")
	  or die 'the calls did not wait';
	$blocker->query_safe('COMMIT');
	$blocker->quit;
	$_->quit foreach @calls;
	is(method_of('t_pkey') . method_of('t_v'), 'lsmlsm', 'two calls for one table both succeed');
	sql('DELETE FROM t WHERE id = 100000');
	is(facts('t'), $before, 'two calls keep everything and leave no copies');
	check_clean($node, 'indexes are sound after two calls');
	sql("CALL lsm_convert('t_pkey', 'btree')");
	sql("CALL lsm_convert('t_v', 'btree')");
}

# --- load -------------------------------------------------------------------------------------------------------------

# No statement may wait for a lock on the table or its indexes. The limit for other waits is
# generous, because test machines stall.
sql('INSERT INTO t SELECT i, i FROM generate_series(10000, 60000) i');
foreach my $method ('lsm', 'btree', 'lsm')
{
	my $load = load_start($node, name => "convert_$method", seconds => 600, options => '-c statement_timeout=60s -c lock_timeout=5s', scripts => [
		[ 4, "\\set k random(100000, 900000)\nINSERT INTO t VALUES (:k, :k) ON CONFLICT DO NOTHING;\n" ],
		[ 2, "\\set k random(10000, 60000)\nSELECT * FROM t WHERE id = :k;\n" ],
		[ 1, "\\set k random(10000, 60000)\nDELETE FROM t WHERE id = :k;\n" ] ]);

	$node->poll_query_until('postgres', "SELECT count(*) > 100 FROM t WHERE id >= 100000") or die 'no load';
	sql("CALL lsm_convert('$_', '$method')") foreach 't_pkey', 't_v', 't_plain';
	$load->{handle}->signal('INT');
	$load->{handle}->finish;
	unlike(${ $load->{out} }, qr/ERROR|aborted/, "to $method under load: no statement fails") or diag(${ $load->{out} });
	is(facts('t'), $before, "to $method under load: everything is kept and no copies are left");
	is(join(' ', map { method_of($_) } 't_pkey', 't_v', 't_plain'), "$method $method $method", "to $method under load: all indexes are converted");
	sql('DELETE FROM t WHERE id >= 100000');
}
check_clean($node, 'indexes are sound after the loads');

# No query or writer needs to wait for a conversion: it holds no lock that conflicts with theirs.
SKIP:
{
	skip 'pg_lsm was built without stop points', 1 unless $has_stop_points;
	foreach my $point ('convert-build', 'convert-swap', 'convert-swapped', 'convert-drop')
	{
		my $holder = $node->background_psql('postgres');
		my $call = $node->background_psql('postgres');

		$holder->query_safe("SELECT pg_advisory_lock(hashtext('$point'))");
		$call->query_until(qr/start/, "SET pg_lsm.debug_stop_at = '$point';\n\\echo start\nCALL lsm_convert('t_pkey', 'btree');\n");
		$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query ~ '^CALL lsm' AND wait_event = 'advisory')")
		  or die 'the stop point was not reached';
		($ret, $out, $err) = $node->psql('postgres', "
			SET lock_timeout = '1s';
			SELECT count(*) FROM t WHERE id = 7;
			INSERT INTO t VALUES (100001, 100001); UPDATE t SET v = v + 1 WHERE id = 100001;
			BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE; COMMIT;
			DELETE FROM t WHERE id = 100001");
		is($ret, 0, "$point: no statement waits") or diag($err);
		$holder->quit;
		$call->quit;
		is(method_of('t_pkey'), 'btree', "$point: the conversion succeeds");
		sql("CALL lsm_convert('t_pkey', 'lsm')");
	}
}

# --- foreign keys -----------------------------------------------------------------------------------------------------

sql("CREATE TABLE child (t_id int CONSTRAINT child_fk REFERENCES t ON DELETE CASCADE); CREATE INDEX ON child (t_id)") if $version >= 180000;
SKIP:
{
	skip 'foreign keys need a btree before 18', 1 if $version < 180000;
	sql('INSERT INTO child SELECT id FROM t ORDER BY id LIMIT 100');
	foreach my $method ('btree', 'lsm')
	{
		sql("CALL lsm_convert('t_pkey', '$method')");
		is(sql("SELECT conindid::regclass, convalidated FROM pg_constraint WHERE conname = 'child_fk'"), 't_pkey|t', "to $method: the foreign key refers to the new index");
		($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO child VALUES (-1)');
		like($err, qr/violates foreign key constraint/, "to $method: the foreign key is checked");
		sql('DELETE FROM t WHERE id = (SELECT min(t_id) FROM child)');
		is(sql('SELECT count(*) FROM child c LEFT JOIN t ON t.id = c.t_id WHERE t.id IS NULL'), 0, "to $method: deletes cascade");
	}
}

# --- keys of partitioned tables ----------------------------------------------------------------------------------------

sub facts_of_parts
{
	return sql("
		SELECT c.relname, i.indisprimary, i.indisreplident, k.conname, k.conparentid <> 0
		FROM pg_partition_tree('parts_pkey') t JOIN pg_class c ON c.oid = t.relid JOIN pg_index i ON i.indexrelid = c.oid
			LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.contype = 'p'
		ORDER BY 1");
}

SKIP:
{
	skip 'keys of partitioned tables need a btree before 18', 1 if $version < 180000;
	sql("
		CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
		CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
		CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (id);
		CREATE TABLE parts21 PARTITION OF parts2 FOR VALUES FROM (1000) TO (1500);
		INSERT INTO parts SELECT i, i FROM generate_series(1, 1499) i;
		CREATE TABLE refers (id int CONSTRAINT refers_fk REFERENCES parts ON DELETE CASCADE);
		INSERT INTO refers SELECT id FROM parts;
		ALTER TABLE parts REPLICA IDENTITY USING INDEX parts_pkey");
	my $same = facts_of_parts();
	foreach my $method ('lsm', 'btree', 'lsm')
	{
		if ($has_stop_points)
		{
			my $old = checkpointer($node);

			($ret, $out, $err) = $node->psql('postgres', "SET pg_lsm.debug_stop_at = 'convert-swapped:crash'; CALL lsm_convert('parts_pkey', '$method')");
			isnt($ret, 0, "parts to $method: the server crashes");
			wait_for_restart($node, $old);
			($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO parts VALUES (1400)');
			like($err, qr/violates unique constraint/, "parts to $method: the key of each partition rejects a duplicate");
		}
		sql("CALL lsm_convert('parts_pkey', '$method')");
		is(sql("SELECT DISTINCT amname FROM pg_partition_tree('parts_pkey') JOIN pg_class c ON c.oid = relid JOIN pg_am a ON a.oid = relam"), $method, "parts to $method: the whole index tree is converted");
		is(facts_of_parts(), $same, "parts to $method: all properties of the keys are kept");
		is(sql("SELECT count(*) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relname LIKE 'lsm_convert%'"), 0, "parts to $method: no copies are left");
		is(sql('INSERT INTO parts VALUES (7, 7), (1400, 7) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING id'), "7\n1400", "parts to $method: ON CONFLICT works");
		($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO refers VALUES (1600)');
		like($err, qr/violates foreign key constraint/, "parts to $method: the foreign key is checked");
		sql('DELETE FROM parts WHERE id = (SELECT max(id) FROM refers)');
		is(sql('SELECT count(*) FROM refers r LEFT JOIN parts USING (id) WHERE parts.id IS NULL'), 0, "parts to $method: deletes cascade");
	}
	sql("CREATE TABLE parts22 PARTITION OF parts2 FOR VALUES FROM (1500) TO (2000)");
	is(method_of('parts22_pkey'), 'lsm', 'a new partition gets an lsm key');
	check_clean($node, 'converted partitions are sound');
}

# --- dump, restore, DROP EXTENSION ------------------------------------------------------------------------------------

($ret, $out, $err) = $node->psql('postgres', 'DROP EXTENSION pg_lsm');
like($err, qr/constraint t_v on table t depends on operator class/, 'DROP EXTENSION is refused while converted indexes exist');
sql('CREATE DATABASE copy');
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('postgres') ], 'dump');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('copy') ], 'restore');
is($node->safe_psql('copy', "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'lsm'"), $version < 180000 ? 3 : 8, 'a dump keeps the method');

$node->stop;
done_testing();
