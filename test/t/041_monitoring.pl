# The collectors in monitoring/: a role that is only a member of pg_monitor can run each query of each collector, on a
# primary and on a standby. The queries return the columns that the collectors name, and never wait for a lock on a table.
# Also tests monitoring/check_all.sh and pg_lsm.explain_reads.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = "$FindBin::RealBin/../../monitoring";

my $node = start_new_node('primary', conf => $full);
$node->safe_psql('postgres', q{
	CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
	-- A user's functions that match an oid argument better than the functions that the queries mean.
	CREATE FUNCTION lsm_runs(oid, OUT state text, OUT bytes bigint, OUT entries bigint) LANGUAGE plpgsql AS $$ BEGIN RAISE 'captured'; END $$;
	CREATE FUNCTION pg_relation_size(oid) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'captured'; END $$;
	CREATE TABLE t (k int);
	CREATE INDEX t_k ON t USING lsm (k);
	INSERT INTO t SELECT hashint4(i) FROM generate_series(1, 5000) i;
	CREATE UNLOGGED TABLE u (k int);
	CREATE INDEX u_k ON u USING lsm (k);
	CREATE TABLE twice (k int);
	INSERT INTO twice VALUES (1), (1)});
$node->psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY invalid ON twice USING lsm (k)');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

sub list
{
	return join ',', $_[0] =~ /\w+/g;
}

# The queries of a collector: name => [query, its labels, its values].
sub queries
{
	my ($collector) = @_;
	my $text = slurp_file("$folder/$collector");
	my %queries;

	if ($collector eq 'sql_exporter.yml')
	{
		$queries{$1} = [$4, list($2), list($3)]
		  while $text =~ /- name: (\w+)\n +help.*\n +labels: \[(.*)\]\n +values: \[(.*)\]\n.*\n    query: \|\n((?: {6}.*\n)+)/g;
	}
	elsif ($collector eq 'pg_exporter.yml')
	{
		while ($text =~ /^(\w+):\n  name.*\n  desc.*\n  query: \|\n((?: {4}.*\n)+)(?:  .*\n)*?  metrics:\n((?:  - .*\n)+)/gm)
		{
			my ($name, $query, $columns) = ($1, $2, $3);
			$queries{$name} = [$query, join(',', $columns =~ /(\w+): \{usage: LABEL/g), join(',', $columns =~ /(\w+): \{usage: (?:GAUGE|COUNTER)/g)];
		}
	}
	else
	{
		while ($text =~ /^  (\w+):\n    desc.*\n    sqls:\n      15: \|\n((?: {8}.*\n)+)/gm)
		{
			my ($name, $query) = ($1, $2);
			my ($columns) = $query =~ /AS epoch_ns, (.*)/;
			$queries{$name} = [$query, join(',', $columns =~ /AS tag_(\w+)/g), list($columns =~ s/\w+ AS tag_\w+,//gr)];
		}
	}
	return \%queries;
}

# Returns what a query returns to the role monitor, or its error.
sub as_monitor
{
	my ($where, $query) = @_;
	my ($ret, $out, $err) = $where->psql('postgres', $query, extra_params => [ '--username' => 'monitor' ]);

	return $ret == 0 && $err eq '' ? $out : "error: $err";
}

my %collectors = map { $_ => queries($_) } qw(sql_exporter.yml pg_exporter.yml pgwatch.yaml);
my $names = 'pg_lsm_database pg_lsm_index pg_lsm_size pg_lsm_state';
my $asked = $collectors{'sql_exporter.yml'};

# A temporary table of another session.
my $other = $node->background_psql('postgres');
$other->query_safe('CREATE TEMP TABLE temporary (k int); CREATE INDEX temporary_k ON temporary USING lsm (k)');

foreach my $collector (sort keys %collectors)
{
	my $queries = $collectors{$collector};

	is(join(' ', sort keys %$queries), $names, "$collector: all queries");
	foreach my $name (sort keys %$queries)
	{
		my ($query, $labels, $values) = @{ $queries->{$name} };
		my $columns = as_monitor($node, "$query \\gdesc") =~ s/^(?:epoch_ns\|bigint\n)?//r;

		$columns =~ s/^tag_//mg;
		is("$labels $values", "$asked->{$name}[1] $asked->{$name}[2]", "$collector: $name has the same columns as in the other collectors");
		is(join(',', $columns =~ /^(\w+)\|text$/mg) . ' ' . join(',', $columns =~ /^(\w+)\|(?:bigint|double precision)$/mg),
			"$labels $values", "$collector: $name returns the columns that the collector names");
		unlike(as_monitor($_, $query), qr/^error/, "$collector: $name on the " . $_->name) foreach ($node, $standby);
	}
}

sub from
{
	my ($where, $name, $columns) = @_;

	return as_monitor($where, "SELECT $columns FROM ($asked->{$name}[0]) q");
}

is(from($node, 'pg_lsm_index', q{sum(entries_inserted) FILTER (WHERE indexrelname = 't_k')}), '5000',
	'entries');
like(from($node, 'pg_lsm_state', q{string_agg(indexrelname, ' ' ORDER BY indexrelname)}), qr/^t_k/, 'runs of the index with rows');
is(from($node, 'pg_lsm_size', q{string_agg(indexrelname, ' ' ORDER BY indexrelname)}), 'invalid t_k u_k', 'sizes leave out temporary indexes');
is(from($standby, 'pg_lsm_size', q{string_agg(indexrelname, ' ' ORDER BY indexrelname)}), 'invalid t_k',
	'on a standby, sizes leave out unlogged ones');
is(from($node, 'pg_lsm_size', q{bool_and(file_bytes = run_bytes + reusable_bytes), sum(entries)}), 't|5000', 'sizes add up');
is(from($node, 'pg_lsm_database', 'launchers, max_workers, in_recovery'), '1|0|0', 'the processes of the primary');
is(from($standby, 'pg_lsm_database', 'launchers, in_recovery'), '0|1', 'the processes of the standby');

# No query waits for a lock.
$other->query_safe('BEGIN; LOCK TABLE t');
is(as_monitor($node, "SET lock_timeout = 1; SELECT string_agg(indexrelname, ' ' ORDER BY indexrelname) FROM ($asked->{pg_lsm_size}[0]) q"),
	'invalid u_k', 'a locked table is left out');
unlike(as_monitor($node, "SET lock_timeout = 1; $asked->{$_}[0]"), qr/^error/, "$_ with a locked table") foreach (split / /, $names);
$other->quit;

# check_all.sh finds a damaged index, which pg_amcheck skips.
{
	local %ENV = $node->_get_env(PGUSER => $node->safe_psql('postgres', 'SELECT current_user'));
	my $check = "$folder/check_all.sh";

	# PostgreSQL 19 refuses names with newlines.
	my $name = $node->pg_version->major < 19 ? "postgres\nother; one\n" : 'other; one';
	$node->safe_psql('postgres', qq{CREATE DATABASE "$name"});
	$node->safe_psql($name, 'CREATE SCHEMA s; CREATE EXTENSION pg_lsm SCHEMA s; CREATE TABLE t (k int);
		CREATE INDEX t_k ON t USING lsm (k); INSERT INTO t SELECT generate_series(1, 5000)');

	# The owner of a database cannot make check_all.sh run the owner's code.
	$node->safe_psql('postgres', 'CREATE ROLE mallory; CREATE DATABASE mdb OWNER mallory');
	$node->safe_psql('mdb', q{CREATE EXTENSION pg_lsm;
		SET ROLE mallory;
		CREATE SCHEMA evil;
		CREATE FUNCTION evil.format(text, regnamespace, text) RETURNS text LANGUAGE sql AS $$ SELECT 'ALTER ROLE mallory SUPERUSER'::text $$;
		CREATE VIEW evil.pg_extension AS SELECT 'pg_lsm'::name AS extname, 'public'::regnamespace::oid AS extnamespace;
		CREATE FUNCTION public.lsm_check_all(heapallindexed text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE mallory SUPERUSER; END $$;
		CREATE FUNCTION public.lsm_check_all(heapallindexed boolean) RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE mallory SUPERUSER; END $$});
	foreach my $path ('evil, pg_catalog', 'public')
	{
		$node->safe_psql('postgres', "ALTER DATABASE mdb SET search_path = $path");
		command_like([ $check, '--heap' ], qr/^$/, "check_all.sh: all is sound, search_path $path");
		is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', 'check_all.sh runs no code of a database owner');
	}
	$node->safe_psql('postgres', q{DROP DATABASE mdb;
		UPDATE pg_database SET datcollversion = 'old'});
	command_checks_all([$check], 0, [qr/^$/], [qr/^$/], 'check_all.sh: warnings are no faults');
	$node->safe_psql('postgres', 'UPDATE pg_database SET datcollversion = NULL');
	$node->safe_psql($name, 'ALTER FUNCTION s.lsm_check_all RENAME TO renamed');
	command_checks_all([$check], 1, [qr/^ERROR: .*does not exist.*\n\Q$name\E: the check failed\n\z/s], [qr/^$/], 'check_all.sh: a failure');
	$node->safe_psql($name, 'ALTER FUNCTION s.renamed RENAME TO lsm_check_all');

	my $file = $node->data_dir . '/' . $node->safe_psql($name, q{SELECT pg_relation_filepath('t_k')});
	my $pages = (-s $file) / 8192;
	$node->stop;
	foreach my $block (4 .. $pages - 1)
	{
		my $page = page_read($file, $block);
		substr($page, 200, 100) = 'x' x 100;
		page_write($file, $block, $page);
	}
	$node->start;
	command_checks_all([$check], 1, [qr/^\Q$name\E\|public\.t_k\|.*\n\z/], [qr/^$/], 'check_all.sh: a fault');
	command_checks_all([ 'pg_amcheck', '--all', '--install-missing' ], 0, [qr/^$/], [qr/^$/], 'pg_amcheck skips it');
}

# auto_explain, and EXPLAIN with the setting. The option in the statement takes precedence.
SKIP:
{
	skip 'extensions can add lines to EXPLAIN from 18 on', 3 if $node->pg_version->major < 18;
	my $query = 'SELECT count(*) FROM t WHERE k = 7';

	foreach my $setting ('pg_lsm.explain_reads = on', $node->pg_version->major < 19 ? () : "auto_explain.log_extension_options = 'lsm'")
	{
		my $log_at = -s $node->logfile;

		$node->safe_psql('postgres', "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
			SET auto_explain.log_level = warning; SET enable_seqscan = off; SET $setting; $query");
		like(slurp_file($node->logfile, $log_at), qr/LSM Reads: seeks=1 /, "auto_explain with $setting");
	}
	my $explain = sub {
		return $node->safe_psql('postgres', "SET enable_seqscan = off; SET pg_lsm.explain_reads = on; EXPLAIN ($_[0]) $query");
	};
	like($explain->('ANALYZE'), qr/LSM Reads: seeks=1 /, 'the setting adds the option');
	unlike($explain->($_), qr/LSM Reads/, "EXPLAIN ($_) shows no reads") foreach ('LSM off, ANALYZE', 'COSTS off');
}

done_testing();
