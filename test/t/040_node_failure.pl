# A table that is hash-partitioned over three servers by postgres_fdw, each with a unique and a plain lsm index. Servers
# are killed during COPY, batch inserts, two-phase commits, commits of postgres_fdw, and ordered queries. A model has the
# rows of all acknowledged transactions. After each failure each server has exactly these rows, and all or none of its
# part of a transaction that was not acknowledged, and its indexes are sound.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use List::Util qw(shuffle);
use LsmTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{PG_LSM_SEED} // 1;
my @servers = map { start_new_node("n$_", conf => "restart_after_crash = on\n") } 0 .. 2;
my $coordinator = start_new_node('coordinator', conf => "enable_sort = off\n");
my $by_index = '-c enable_seqscan=off -c enable_sort=off -c enable_bitmapscan=off';
# The messages of libpq and postgres_fdw about a server that is gone.
my $gone = qr/server closed the connection|could not connect to server "n\d"|terminating connection|no connection to the server|could not receive data|could not send data/;
my %model = map { $_ => {} } 0 .. 2;		# server => { key => value } of the rows that must be there
my ($next_row, $next_batch) = (1, 0);

note("seed $seed");
srand $seed;
# A test that holds the advisory lock 1 on a server stops each commit there, just before the server begins it.
$_->safe_psql('postgres', q{
	CREATE TABLE t (k int PRIMARY KEY WITH (lsm = true), v int, f text);
	CREATE INDEX t_v ON t USING lsm (v);
	CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
		RETURN NULL;
	END $$;
	CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold();
}) foreach @servers;
$coordinator->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw; CREATE TABLE t (k int, v int, f text) PARTITION BY HASH (k)');
foreach my $i (0 .. 2)
{
	my ($host, $port) = ($servers[$i]->host, $servers[$i]->port);

	$coordinator->safe_psql('postgres', "
		CREATE SERVER n$i FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '40', fetch_size '30', options '$by_index');
		CREATE USER MAPPING FOR CURRENT_USER SERVER n$i;
		CREATE FOREIGN TABLE t_$i PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER $i) SERVER n$i OPTIONS (table_name 't')");
}

# New rows, as { server => { key => value } }. No key comes twice.
sub new_batch
{
	my ($rows) = @_;
	my %batch = map { $_ => {} } 0 .. 2;
	my @keys = map { ($next_row++ * 48271) % 2147483647 } 1 .. $rows;
	my $homes = join ', ', map { "CASE WHEN satisfies_hash_partition('t'::regclass, 3, $_, k) THEN $_ END" } 0 .. 2;

	foreach my $row (split /\n/, $coordinator->safe_psql('postgres',
			"SELECT coalesce($homes), k FROM unnest('{" . join(',', @keys) . "}'::int[]) k"))
	{
		my ($home, $key) = split /\|/, $row;
		$batch{$home}{$key} = int rand 1000;
	}
	return \%batch;
}

# The rows of a batch in random order, as lines of "key value", or those of one server.
sub batch_rows
{
	my ($batch, @homes) = @_;

	return shuffle map { my $part = $batch->{$_}; map { "$_ $part->{$_}" } sort keys %$part } @homes ? @homes : 0 .. 2;
}

# The INSERT that adds a batch, or the part of one server.
sub insert
{
	return 'INSERT INTO t SELECT k, v, repeat(\'f\', 60) FROM (VALUES ' . join(', ', map { '(' . s/ /, /r . ')' } batch_rows(@_)) . ') r(k, v)';
}

sub acknowledge
{
	my ($batch) = @_;

	$model{$_} = { %{ $model{$_} }, %{ $batch->{$_} } } foreach 0 .. 2;
	return;
}

sub rows_of
{
	my ($rows) = @_;

	return join ' ', map { "$_|$rows->{$_}" } sort { $a <=> $b } keys %$rows;
}

# Each server has exactly the model's rows, plus all or none of its part of the batch in doubt. What is there joins the
# model. Returns for each server whether it has its part, as in '101'.
sub check_all
{
	my ($name, $doubt) = @_;
	my ($found, $parts) = ('', '');

	foreach my $i (0 .. 2)
	{
		my $there = join ' ', split /\n/, $servers[$i]->safe_psql('postgres', 'SELECT k, v FROM t ORDER BY k');
		my %with = (%{ $model{$i} }, %{ $doubt ? $doubt->{$i} : {} });
		my $has_part = $doubt && $there eq rows_of(\%with);

		$model{$i} = \%with if $has_part;
		$parts .= $has_part ? 1 : 0;
		$found .= "n$i has other rows than the model\n" if $there ne rows_of($model{$i});
		$found .= problems($servers[$i]);
	}
	is($found, '', "$name: every server has the right rows and sound indexes");
	is(join(' ', split /\n/, $coordinator->safe_psql('postgres', 'SELECT k, v FROM t ORDER BY k')),
		rows_of({ map { %{ $model{$_} } } 0 .. 2 }), "$name: an ordered query returns them");
	return $parts;
}

# As if the machine of a server lost its processes.
sub kill_server
{
	kill_postmaster($_[0], 1);
	return;
}

# A session that gets its input piece by piece, and continues after errors.
sub start_session
{
	my %session = (in => '', out => '', err => '');

	$session{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $coordinator->connstr('postgres') ],
		'<', \$session{in}, '>', \$session{out}, '2>', \$session{err});
	return \%session;
}

# Waits until the session has read the text, and until it has printed the text's last word, if this is an echo.
sub send_input
{
	my ($session, $text) = @_;
	my ($echo) = $text =~ /\\echo (\w+)\n$/;

	$session->{in} .= $text;
	foreach (1 .. 6000)
	{
		$session->{run}->pump_nb;
		return if length $session->{in} == 0 && (!defined $echo || $session->{out} =~ /$echo/);
		select(undef, undef, undef, 0.01);
	}
	die "a session hangs: $session->{err}";
}

# Ends the session. Returns whether there were no errors.
sub end_session
{
	my ($session) = @_;

	$session->{run}->finish;
	return $session->{err} eq '';
}

# Long rows, because the coordinator collects up to 64 kB of them before it sends any (PostgreSQL 16 and later).
sub copy_lines
{
	return join '', map { s/ /\t/r . "\t" . 'f' x 600 . "\n" } @_;
}

# The server has a transaction of the coordinator that has written.
sub wait_for_writes
{
	my ($server) = @_;

	$server->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'postgres_fdw' AND backend_xid IS NOT NULL})
	  or die 'no rows arrive';
	return;
}

# The servers at which a commit waits.
sub held
{
	return grep { $servers[$_]->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'}) > 0 } @_;
}

sub wait_until_held
{
	foreach (1 .. 600)
	{
		my ($i) = held(@_);
		return $i if defined $i;
		select(undef, undef, undef, 0.05);
	}
	die 'no commit waits';
}

sub hold_commits
{
	my %holders = map { $_ => $servers[$_]->background_psql('postgres') } @_;

	$_->query_safe('SELECT pg_advisory_lock(1)') foreach values %holders;
	return \%holders;
}

sub wait_for_disconnection
{
	$_->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'postgres_fdw'})
	  or die 'sessions of the coordinator remain' foreach @servers;
	return;
}

# COPY through the coordinator. A server dies before it, in its middle, or when all rows have arrived.
my $first = new_batch(900);
$coordinator->safe_psql('postgres', insert($first));
acknowledge($first);
check_all('the first rows');
like($servers[0]->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_sort = off; EXPLAIN SELECT k, v FROM t ORDER BY k'),
	qr/Index Scan using t_pkey/, 'the ordered queries of the coordinator read the index');
foreach my $round (0 .. 4)
{
	my $when = (qw(commit middle before))[ $round % 3 ];
	my $victim = int rand 3;
	my $batch = new_batch(600 + int rand 400);
	my @rows = batch_rows($batch);
	my $pause = $when eq 'commit' ? @rows : 200 + int rand 300;
	my $name = "COPY, round $round, n$victim dies, $when";
	my $session = start_session();

	if ($when eq 'before')
	{
		send_input($session, "SELECT sum(v) AS sum FROM t \\gset\n\\echo connected\n");
		kill_server($servers[$victim]);
		$pause = 0;
	}
	send_input($session, "BEGIN;\nCOPY t FROM STDIN;\n" . copy_lines(@rows[ 0 .. $pause - 1 ]));
	if ($when eq 'middle')
	{
		wait_for_writes($servers[$victim]);
		kill_server($servers[$victim]);
	}
	send_input($session, copy_lines(@rows[ $pause .. $#rows ]) . "\\.\n\\echo copied\n");
	kill_server($servers[$victim]) if $when eq 'commit';
	send_input($session, "COMMIT;\n");
	ok(!end_session($session), "$name: the transaction fails");
	like($session->{err}, $gone, "$name: the error says that the server is gone");
	$servers[$victim]->start;
	wait_for_disconnection();
	my $parts = check_all($name, $batch);
	is(substr($parts, $victim, 1), 0, "$name: n$victim has none of the rows");
	is($parts, '000', "$name: no server has any of the rows") if $when ne 'commit';
	note("$name: parts committed: $parts");
	# The same COPY succeeds if it is repeated. Rows that are already there are left out.
	my @again = grep { substr($parts, $_, 1) eq '0' } 0 .. 2;
	$session = start_session();
	send_input($session, "COPY t FROM STDIN;\n" . copy_lines(batch_rows($batch, @again)) . "\\.\n");
	ok(end_session($session), "$name: the COPY succeeds afterwards") or diag($session->{err});
	acknowledge($batch);
}

# A server dies inside of pg_lsm, while a statement of the coordinator inserts, and restarts by itself.
SKIP:
{
	skip 'no stop points in this build', 1 if ($servers[0]->psql('postgres', "LOAD 'pg_lsm'; SHOW pg_lsm.debug_stop_at"))[0] != 0;
	foreach my $point (qw(page-sealed batch-written unique-publish merge-install))
	{
		my $victim = int rand 3;
		my $batch = new_batch(500);
		my $checkpointer = checkpointer($servers[$victim]);

		$coordinator->safe_psql('postgres', "ALTER SERVER n$victim OPTIONS (SET options '$by_index -c pg_lsm.debug_stop_at=$point:crash')");
		my ($ret, $out, $err) = $coordinator->psql('postgres', insert($batch));
		isnt($ret, 0, "INSERT, n$victim crashes at $point");
		like($err, $gone, "$point: the error says that the server is gone");
		$coordinator->safe_psql('postgres', "ALTER SERVER n$victim OPTIONS (SET options '$by_index')");
		wait_for_restart($servers[$victim], $checkpointer);
		wait_for_disconnection();
		is(check_all($point, $batch), '000', "$point: no server has any of the rows");
		$coordinator->safe_psql('postgres', insert($batch));
		acknowledge($batch);
	}
}

# Two-phase commit by the application, on the servers themselves.
my ($ret, $out, $err) = $coordinator->psql('postgres', 'BEGIN; ' . insert(new_batch(100)) . "; PREPARE TRANSACTION 'x'");
like($err, qr/ERROR:  cannot PREPARE a transaction that has operated on postgres_fdw foreign tables/, 'postgres_fdw refuses PREPARE TRANSACTION');
wait_for_disconnection();
foreach my $round (0 .. 2)
{
	my $victim = int rand 3;
	my $batch = new_batch(300);
	my $commit = $round % 2 == 0;
	my $name = "two-phase commit, round $round, n$victim dies";
	my ($key) = sort keys %{ $batch->{$victim} };
	my $holders = $commit ? {} : hold_commits($victim);
	my $preparing;

	foreach my $i ((grep { $_ != $victim } 0 .. 2), $victim)
	{
		my $sql = 'BEGIN; ' . insert($batch, $i) . "; PREPARE TRANSACTION 'round$round';";

		if ($commit || $i != $victim)
		{
			$servers[$i]->safe_psql('postgres', $sql);
			next;
		}
		# It dies before PREPARE TRANSACTION has done anything.
		$preparing = $servers[$i]->background_psql('postgres', on_error_stop => 0);
		$preparing->query_until(qr/begun/, "\\echo begun\n$sql\n");
		wait_until_held($i);
	}
	kill_server($servers[$victim]);
	# (Their server is gone.)
	eval { $_->quit } foreach grep { defined } $preparing, values %$holders;
	($ret, $out, $err) = $coordinator->psql('postgres', 'SELECT count(*) FROM t');
	like($err, qr/ERROR:  could not connect to server "n$victim"/, "$name: a query names the server");
	$servers[$victim]->start;
	is($servers[$victim]->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts'), $commit ? "round$round" : '',
		"$name: the server " . ($commit ? 'still has its prepared transaction' : 'has prepared nothing'));
	check_all("$name, not committed yet");
	if ($commit)
	{
		my $insert = "INSERT INTO t VALUES ($key, 0)";

		($ret, $out, $err) = $servers[$victim]->psql('postgres', "SET lock_timeout = '100ms'; $insert");
		like($err, qr/canceling statement due to lock timeout/, "$name: the same key waits for the prepared transaction");
		$servers[$victim]->safe_psql('postgres', q{SELECT lsm_compact('t_pkey'), lsm_compact('t_v')});
		$servers[$victim]->safe_psql('postgres', 'VACUUM t');
		$_->safe_psql('postgres', "COMMIT PREPARED 'round$round'") foreach @servers;
		acknowledge($batch);
		($ret, $out, $err) = $servers[$victim]->psql('postgres', $insert);
		like($err, qr/duplicate key value violates unique constraint "t_pkey"/, "$name: the key is taken afterwards");
		# An acknowledged COMMIT PREPARED survives.
		kill_server($servers[$victim]);
		$servers[$victim]->start;
	}
	else
	{
		$servers[$_]->safe_psql('postgres', "ROLLBACK PREPARED 'round$round'") foreach grep { $_ != $victim } 0 .. 2;
	}
	check_all("$name, " . ($commit ? 'committed' : 'rolled back'));
}

# postgres_fdw commits on one server after the other. The coordinator, or the second server, dies between two commits.
foreach my $who (qw(coordinator server))
{
	my $batch = new_batch(300);
	my $holders = hold_commits(0 .. 2);
	my $session = start_session();
	my $name = "the $who dies between the commits of two servers";

	send_input($session, 'BEGIN; ' . insert($batch) . ";\n\\echo inserted\n");
	send_input($session, "COMMIT;\n\\echo acknowledged :ERROR\n");
	my $one = wait_until_held(0 .. 2);
	is(scalar(held(0 .. 2)), 1, "$name: the servers commit one by one");
	(delete $holders->{$one})->quit;
	my $two = wait_until_held(grep { $_ != $one } 0 .. 2);
	my ($three) = grep { $_ != $one && $_ != $two } 0 .. 2;
	kill_server($who eq 'coordinator' ? $coordinator : $servers[$two]);
	eval { $_->quit } foreach values %$holders;
	ok(!end_session($session), "$name: the transaction is not acknowledged");
	unlike($session->{out}, qr/acknowledged false/, "$name: COMMIT does not succeed");
	like($session->{err}, $gone, "$name: the error says so");
	($who eq 'coordinator' ? $coordinator : $servers[$two])->start;
	wait_for_disconnection();
	my $parts = check_all($name, $batch);
	is(substr($parts, $one, 1), 1, "$name: the first server has committed");
	# A server that has got COMMIT does not ask whether its client is still there.
	is(substr($parts, $two, 1), $who eq 'coordinator' ? 1 : 0, "$name: the second server");
	is(substr($parts, $three, 1), 0, "$name: the third server has rolled back");
	# The documented cure.
	$coordinator->safe_psql('postgres', insert($batch) . ' ON CONFLICT DO NOTHING');
	acknowledge($batch);
}

# Ordered queries, which merge sorted rows of the servers.
my %expected = (
	'k, v' => [ map { my $i = $_; map { "$_|$model{$i}{$_}" } keys %{ $model{$i} } } 0 .. 2 ],
	'v' => [ map { values %{ $model{$_} } } 0 .. 2 ]);
foreach my $columns (sort keys %expected)
{
	my ($key) = $columns =~ /^(\w)/;
	my $query = "SELECT $columns FROM t ORDER BY $key";
	my @expected = sort { ($a =~ /^(\d+)/)[0] <=> ($b =~ /^(\d+)/)[0] } @{ $expected{$columns} };

	like($coordinator->safe_psql('postgres', "EXPLAIN (COSTS OFF, VERBOSE) $query"), qr/Merge Append.*Remote SQL: SELECT [^\n]* ORDER BY/s,
		"the servers sort by $key");
	foreach my $round (1 .. length $columns > 1 ? 2 : 1)
	{
		my $victim = int rand 3;
		my $name = "ordered query by $key, round $round, n$victim dies";
		my $session = $coordinator->background_psql('postgres', on_error_stop => 0);
		my @got;

		$session->query('BEGIN');
		$session->query("DECLARE c CURSOR FOR $query");
		push @got, split /\n/, $session->query('FETCH 40 FROM c') foreach 1 .. 1 + int rand 5;
		kill_server($servers[$victim]);
		$session->{stderr} = '';
		while (1)
		{
			my @more = split /\n/, $session->query('FETCH 40 FROM c');
			push @got, @more;
			last if !@more || @got > @expected;
		}
		like($session->{stderr}, $gone, "$name: an error, after " . @got . ' rows');
		is("@got", "@expected[0 .. $#got]", "$name: the rows before the error are right");
		$session->query('ROLLBACK');
		$servers[$victim]->start;
		is(join(' ', split /\n/, $session->query($query)), "@expected", "$name: after the restart, the same session gets all rows");
		$session->quit;
	}
}
check_all('after the queries');

unlike(log_since($_, 0), qr/TRAP|PANIC/, 'no assertion failed on ' . $_->name) foreach @servers;
$_->stop foreach $coordinator, @servers;
done_testing();
