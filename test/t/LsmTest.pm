# Functions that the TAP tests share: nodes with tiny limits, the comparison with sequential scans, page surgery.
package LsmTest;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(sum0);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw($full $slowness new_node start_new_node change_settings indexes problems check_clean same_rows kill_postmaster
  load_start load_stop lost_commits page_read page_write page_kinds live_ids
  lost_blocks kill_process wait_for_server checkpointer wait_for_restart log_since flush_wal catch_up);

# How many times as long the server may take (tools/checkers.sh).
our $slowness = $ENV{PG_LSM_SLOWNESS} // 1;

# Merges and levels at small sizes.
our $tiny = "
pg_lsm.debug_buffer_entries = 5
pg_lsm.debug_page_entries = 7
pg_lsm.debug_merge_fanout = 3
pg_lsm.debug_foreground_blocks = 8
pg_lsm.debug_segment_size = 4
pg_lsm.debug_batch_min_entries = 4
pg_lsm.debug_batch_entries = 50
pg_lsm.max_workers = 0
";

# The default limits, except for the workers. Append them after the tiny ones.
our $full = "
pg_lsm.debug_buffer_entries = 0
pg_lsm.debug_page_entries = 0
pg_lsm.debug_merge_fanout = 16
pg_lsm.debug_foreground_blocks = 1MB
pg_lsm.debug_segment_size = 0
pg_lsm.debug_batch_min_entries = 48
pg_lsm.debug_batch_entries = 0
";

# A node whose standbys find the WAL they lack, however long they were behind.
sub new_node
{
	my ($name, %params) = @_;
	my $keep = $params{init}{allows_streaming} ? '3GB' : '0';
	my $node = PostgreSQL::Test::Cluster->new($name, %{ $params{new} // {} });

	$node->init(%{ $params{init} // {} });
	$node->append_conf(
		'postgresql.conf', "
shared_preload_libraries = 'pg_lsm'
shared_buffers = 16MB
jit = off
autovacuum = off
max_prepared_transactions = 20
max_connections = 40
log_statement = none
log_min_messages = warning
wal_keep_size = $keep
$tiny
" . ($params{conf} // ''));
	return $node;
}

# A running node that supports replication, need not survive crashes of the machine, and has the extension.
sub start_new_node
{
	my ($name, %params) = @_;
	my $node = new_node($name, init => { allows_streaming => 1 }, conf => "fsync = off\n" . ($params{conf} // ''));

	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');
	return $node;
}

# Changes settings of the server.
sub change_settings
{
	my ($node, %settings) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $_ = '$settings{$_}'") foreach keys %settings;
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	return;
}

# Names of all lsm indexes in a database.
sub indexes
{
	my ($node, $db) = @_;

	return split /\n/, $node->safe_psql($db // 'postgres',
		q{SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		  WHERE a.amname = 'lsm' AND c.relkind = 'i' ORDER BY c.relname});
}

# Everything that is wrong with the indexes of a database: the errors of lsm_check, and each index whose entries in
# index order differ from those of a sequential scan. With no_check, lsm_check is left out. If an index's query does not
# use it, this is a fault, unless the index's operator classes are not the default. A database without any lsm index is
# a fault as well, because then nothing was checked.
sub problems
{
	my ($node, %params) = @_;
	my $db = $params{db} // 'postgres';
	my $found = '';
	my $writes = $node->safe_psql($db, 'SELECT NOT pg_is_in_recovery()') eq 't';
	my @indexes = indexes($node, $db);

	return "there is no lsm index\n" unless @indexes;
	foreach my $index (@indexes)
	{
		my ($table, $default, $columns, $where) = split /\|/, $node->safe_psql($db, qq{
			SELECT i.indrelid::regclass,
				(SELECT bool_and(opcdefault) FROM pg_opclass o WHERE o.oid = ANY (i.indclass)),
				(SELECT string_agg(pg_get_indexdef(i.indexrelid, n, false) ||
						CASE WHEN i.indoption[n - 1] & 1 = 1 THEN ' DESC' ELSE '' END ||
						CASE WHEN i.indoption[n - 1] & 2 = 2 THEN ' NULLS FIRST' ELSE ' NULLS LAST' END, ', ' ORDER BY n)
					FROM generate_series(1, i.indnkeyatts) n),
				coalesce(pg_get_expr(i.indpred, i.indrelid), 'true')
			FROM pg_index i WHERE i.indexrelid = '$index'::regclass});
		my $keys = $columns =~ s/ (DESC|NULLS FIRST|NULLS LAST)//gr;

		unless ($params{no_check})
		{
			my ($ret, $out, $err) = $node->psql($db, "SELECT lsm_check('$index', true)");
			$found .= "lsm_check($index): $err\n" if $ret != 0;
		}
		my $query = "SELECT ROW($keys)::text || ctid FROM $table WHERE $where ORDER BY $columns";
		my $seq = 'SET enable_indexscan = off; SET enable_bitmapscan = off';
		my $idx = 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off';
		# Other indexes may give the same order, so hide them. (On a standby this is impossible, and another index may
		# be used.)
		$idx .= "; BEGIN; UPDATE pg_index SET indisvalid = false WHERE indrelid = '$table'::regclass AND indexrelid <> '$index'::regclass"
		  if $writes;
		# The order among equal keys is known if this index gives the order without a sort. (With an operator class that
		# is not the default, a sort may be needed.)
		my $plan = $node->safe_psql($db, "$idx; EXPLAIN (COSTS OFF) $query");
		my $order = $plan =~ /using \Q$index\E on/ && $plan !~ /Sort/ ? '' : ' ORDER BY x COLLATE "C"';
		$found .= "$index is not used: $plan\n"
		  if $default eq 't' && $plan !~ ($writes ? qr/using \Q$index\E on/ : qr/using \S+ on/);
		my $md5 = sub {
			my ($settings, $tie) = @_;
			my ($ret, $out, $err) = $node->psql($db,
				"$settings; SELECT count(*), md5(string_agg(x, ' '$order)) FROM ($query$tie) q(x)");
			return $ret == 0 ? $out : "error: $err";
		};
		my $by_seq = $md5->($seq, ', ctid');
		my $by_index = $md5->($idx, '');
		$found .= "$index: $by_index, should be $by_seq\n" if $by_index ne $by_seq;
	}
	return $found;
}

sub check_clean
{
	my ($node, $name, %params) = @_;

	is(problems($node, %params), '', $name);
	return;
}

# The same query by index and by sequential scan, compared as sets.
sub same_rows
{
	my ($node, $query, $db) = @_;
	my $plan = $node->safe_psql($db // 'postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query");

	unless ($plan =~ /Index (Only )?Scan/)
	{
		diag("no index in the plan of $query: $plan");
		return 0;
	}
	my $sorted = "SELECT count(*), md5(string_agg(q::text, ' ' ORDER BY q::text COLLATE \"C\")) FROM ($query) q";

	return $node->safe_psql($db // 'postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $sorted") eq
	  $node->safe_psql($db // 'postgres', "SET enable_seqscan = off; $sorted");
}

# Kills the postmaster, on request with its children, and waits until these have ended, because the server cannot start
# before that. The postmaster is stopped first, so that it creates no more children.
sub kill_postmaster
{
	my ($node, $with_children) = @_;
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my (@children, @alive);

	kill 'STOP', $pid;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		push @children, $stat if (process_state($stat))[1] == $pid;
	}
	kill 'KILL', map { m{^/proc/(\d+)/} } @children if $with_children;
	$node->kill9;
	foreach my $try (1 .. 300 * $slowness)
	{
		@alive = grep { (process_state($_))[0] =~ /^[^ZX]/ } @children;
		return unless kill(0, $pid) || @alive;
		select(undef, undef, undef, 0.1);
	}
	die "processes of a killed server did not end:\n", map { slurp_stat(s/stat$/cmdline/r) . "\n" } @alive;
}

# State and parent, from a process's stat file.
sub process_state
{
	my @fields = split ' ', (slurp_stat(@_) =~ s/.*\) //sr);

	return ($fields[0] // '', $fields[1] // 0);
}

# A process may end while we look at it.
sub slurp_stat
{
	my ($file) = @_;

	open my $fh, '<', $file or return '';
	my $stat = <$fh> // '';
	close $fh;
	return $stat;
}

# Kills a process of the server as the system would: the one whose pid the query returns, if there is one. Returns
# whether one was killed.
sub kill_process
{
	my ($node, $query, $tries) = @_;

	foreach (1 .. $tries // 100)
	{
		my ($ret, $pid) = $node->psql('postgres', $query);

		return 1 if ($pid // '') =~ /^\d+$/ && kill('KILL', $pid);
		select(undef, undef, undef, 0.01);
	}
	return 0;
}

# Wait until the server has restarted by itself. When psql connects, the server may still be shutting down, and psql may
# exit before it reads our input.
sub wait_for_server
{
	my ($node) = @_;

	foreach (1 .. 900 * $slowness)
	{
		return if eval { ($node->psql('postgres', 'SELECT true'))[0] == 0 };
		select(undef, undef, undef, 0.2);
	}
	die 'server did not come back';
}

# The process that every restart after a crash replaces.
sub checkpointer
{
	my ($node) = @_;

	return ($node->psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"))[1] // '';
}

# Wait until the server has restarted after a crash, where $old was its checkpointer. Right after the crash it may still
# accept connections and then break them.
sub wait_for_restart
{
	my ($node, $old) = @_;

	foreach (1 .. 900 * $slowness)
	{
		my $new = eval { checkpointer($node) } // '';
		return if $new ne '' && $new ne $old;
		select(undef, undef, undef, 0.1);
	}
	die 'server did not restart';
}

# The server's log from a position on, without an assertion that fails in PostgreSQL itself: if the postmaster is gone,
# the leader of a parallel VACUUM leaves a second time while it aborts its transaction.
sub log_since
{
	my ($node, $at) = @_;
	my $log = slurp_file($node->logfile, $at);

	$log =~ s/^TRAP:.*!IsTransactionOrTransactionBlock\(\).*PID: $_\b.*\n//m
	  foreach $log =~ /\[(\d+)\].* postmaster exited during a parallel transaction/g;
	return $log;
}

# Flush all WAL written so far. Records of scans and workers are not flushed by themselves, and a commit waits only if
# its transaction has written records of its own.
sub flush_wal
{
	my ($node) = @_;

	$node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, 'pg_lsm', 'flush')});
	return;
}

# Wait until the standby has replayed everything that the primary has done so far.
sub catch_up
{
	my ($primary, $standby) = @_;

	flush_wal($primary);
	$primary->wait_for_catchup($standby);
	return;
}

# pgbench in the background. With "log" it records which transactions were acknowledged, see lost_commits. If several
# clients VACUUM a table, they should use TRUNCATE off. Otherwise the client that would truncate the heap waits up to
# five seconds for a lock, all others wait behind it, and there is no load.
sub load_start
{
	my ($node, %params) = @_;
	my @scripts;
	my $n = 0;
	my $out = '';

	foreach my $script (@{ $params{scripts} })
	{
		my ($weight, $text) = @$script;
		my $file = $node->basedir . '/load_' . ($params{name} // '') . $n++;

		append_to_file($file, '') unless -e $file;
		open my $fh, '>', $file or die $!;
		print $fh $text;
		close $fh;
		push @scripts, '-f', "$file\@$weight";
	}
	my $log = $params{log} ? $node->basedir . '/acknowledged_' . ($params{name} // '') : undef;
	local %ENV = $node->_get_env();
	local $ENV{PGOPTIONS} = $params{options} // '';
	my $h = IPC::Run::start([
			'pgbench', '-n', '-c', $params{clients} // 4, '-j', $params{clients} // 4,
			defined $params{transactions} ? ('-t', $params{transactions}) : ('-T', $params{seconds} // 20),
			defined $log ? ('--log', "--log-prefix=$log") : (), @scripts, 'postgres' ],
		'<', \undef, '>&', \$out);
	return { handle => $h, out => \$out, log => $log };
}

# Waits until the load ends, by itself or because its server is gone.
sub load_stop
{
	my ($load) = @_;

	$load->{handle}->finish();
	return ${ $load->{out} };
}

# Commits that were acknowledged to a finished load but are missing. The server counts commits in the table commits
# (who, script, n), where script is the number of a script in the load. pgbench's logs count acknowledgments outside the
# server. The last transaction of each client may have committed or not. The counts start anew.
sub lost_commits
{
	my ($node, $load) = @_;
	my $found = '';
	my (%acknowledged, %doubtful);

	foreach my $line (map { split /\n/, slurp_file($_) } glob "$load->{log}.*")
	{
		my ($client, undef, $time, $script) = split / /, $line;

		$acknowledged{"$client|$script"}++ if $time =~ /^\d+$/;
	}
	$found .= "no commit was acknowledged\n" unless %acknowledged;
	foreach my $row (split /\n/, $node->safe_psql('postgres', 'SELECT who, script, n FROM commits'))
	{
		my ($client, $script, $n) = split /\|/, $row;
		my $known = delete $acknowledged{"$client|$script"} // 0;

		$doubtful{$client} += $n - $known;
		$found .= "client $client, script $script: $known commits were acknowledged, but only $n are there\n"
		  if $n < $known || $doubtful{$client} > 1;
	}
	$node->safe_psql('postgres', 'UPDATE commits SET n = 0');
	return $found;
}

# Reads and writes pages of a file.
sub page_read
{
	my ($file, $block) = @_;
	my $page;

	open my $fh, '<:raw', $file or die "$file: $!";
	seek $fh, $block * 8192, 0;
	my $got = read $fh, $page, 8192;
	close $fh;
	return $got ? $page : undef;
}

sub page_write
{
	my ($file, $block, $page) = @_;

	open my $fh, '+<:raw', $file or die "$file: $!";
	seek $fh, $block * 8192, 0;
	print $fh $page;
	close $fh;
	return;
}

# Kinds of the pages of an index file, according to their special areas. Returns a list of hashes with block, kind, open
# (write buffer) and owner. The owner is a run or one of its segments.
sub page_kinds
{
	my ($file) = @_;
	my %names = (0xA501 => 'meta', 0xA502 => 'gate', 0xA503 => 'map',
		0xA504 => 'buffer', 0xA505 => 'leaf', 0xA506 => 'fence', 0xA507 => 'directory', 0xA508 => 'filter');
	my @pages;

	for (my $block = 0; defined(my $page = page_read($file, $block)); $block++)
	{
		my ($kind, $flags) = unpack 'S S', substr($page, 8192 - 4, 4);
		my ($owner) = unpack 'Q', substr($page, 8192 - 32, 8);

		push @pages, { block => $block, kind => $names{$kind} // 'empty',
			open => $kind == 0xA504 && ($flags & 1), owner => $owner };
	}
	return @pages;
}

# Checks that the blocks of an index that lsm_compact and VACUUM have reduced to a single run add up, and returns what
# is wrong. All blocks must be the run's, its directory's, the open page, the fixed pages, or free.
sub lost_blocks
{
	my ($node, $index) = @_;
	my $lost;

	# Another process may be changing the index. Then the counts do not match.
	foreach my $try (1 .. 20)
	{
		$lost = count_blocks($node, $index);
		return '' if $lost eq '';
		select(undef, undef, undef, 0.5);
	}
	return $lost;
}

# Is this block's bit set in the space map? The block is in the first region.
sub is_in_use
{
	my ($file, $block) = @_;

	return vec(substr(page_read($file, 3), 24, 8136), $block, 1);
}

sub count_blocks
{
	my ($node, $index) = @_;
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "CHECKPOINT; SELECT pg_relation_filepath('$index')");
	my @runs = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', "SELECT run_id, state, blocks FROM lsm_runs('$index')");
	my ($mapped, $free) = unpack 'L L', substr(page_read($file, 0), 64, 8);
	my $live = 4;
	my $pages = 0;

	foreach my $run (@runs)
	{
		return "$index: run $run->[0] is $run->[1]\n" unless $run->[1] =~ /^(open|packed)$/;
		# A page that the directory had earlier may be free and still carry the run's id.
		my @directory = map { $_->{block} }
		  grep { $_->{kind} eq 'directory' && $_->{owner} == $run->[0] && is_in_use($file, $_->{block}) } page_kinds($file);

		# The run record also counts segments that the run lost to VACUUM during a merge. Its directory does not.
		$live += @directory ? sum0(map { $_->{blocks} } map { directory_items($file, $_) } @directory) : $run->[2];
		$pages += @directory;
	}
	return $free + $live + $pages == $mapped && (-s $file) >= 8192 * ($mapped - $free) ? '' :
	  "$index: $free blocks are free, $live and $pages directory pages in use, of $mapped\n";
}

# Ids of all possible page owners in an index file: the given runs, and the segments named by the runs' directory
# pages.
sub live_ids
{
	my ($file, @runs) = @_;
	my %live = map { $_ => 1 } @runs;

	foreach my $at (grep { $_->{kind} eq 'directory' && $live{ $_->{owner} } } page_kinds($file))
	{
		$live{ $_->{id} } = 1 foreach grep { $_->{blocks} > 0 } directory_items($file, $at->{block});
	}
	return \%live;
}

# The segments, with id and number of blocks, that a directory page names. Returns none unless the page is on the lowest
# level.
sub directory_items
{
	my ($file, $block) = @_;
	my $page = page_read($file, $block);
	my ($count, $level) = unpack 'S S', substr($page, 24, 4);
	my @items;

	return () if $level != 1;
	foreach my $i (0 .. $count - 1)
	{
		my ($offset) = unpack 'S', substr($page, 8160 - 2 * ($i + 1), 2);
		my ($id, $entries, $removed, $start, $blocks) = unpack 'Q L L L L', substr($page, $offset, 24);

		push @items, { id => $id, blocks => $blocks };
	}
	return @items;
}

1;
