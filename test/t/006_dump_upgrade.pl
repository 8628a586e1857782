# pg_dump and pg_restore recreate indexes; pg_upgrade takes over their files. If PG_LSM_OLD_SERVER names
# the installation of another version with pg_lsm (the folder that contains bin), the upgrade is from that
# version.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old_server = $ENV{PG_LSM_OLD_SERVER};
my $version = PostgreSQL::Test::Cluster->new('version')->pg_version;
# Since 18, initdb enables checksums by default, and both servers must agree.
my $plain_init = sub { return { extra => $_[0] >= 18 ? ['--no-data-checksums'] : [] } };
my %old = $old_server ? (install_path => $old_server) : ();
my $node = new_node('old', new => \%old, init => $plain_init->(PostgreSQL::Test::Cluster->new('old_version', %old)->pg_version), conf => "fsync = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');
$node->safe_psql('postgres', slurp_file("$FindBin::RealBin/../upgrade/all_kinds.sql"));
$node->safe_psql('postgres', 'VACUUM t');
check_clean($node, 'indexes are sound before the dump');

my $definitions = "SELECT indexdef FROM pg_indexes WHERE indexdef ~ 'USING lsm' UNION ALL SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype IN ('p', 'u') AND connamespace = 'public'::regnamespace ORDER BY 1";
my $want = $node->safe_psql('postgres', $definitions);
my $rows = 'SELECT count(*), sum(k), sum(n) FROM t';
my $want_rows = $node->safe_psql('postgres', $rows);

# A plain dump, and an archive that is restored in parallel.
my $plain = $node->basedir . '/plain.sql';
my $archive = $node->basedir . '/archive';
$node->command_ok([ 'pg_dump', '-f', $plain, $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'pg_dump', '-Fd', '-j2', '-f', $archive, $node->connstr('postgres') ], 'pg_dump writes an archive');
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0") foreach qw(plain parallel);
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('plain') ], 'psql restores the plain dump');
$node->command_ok([ 'pg_restore', '-j2', '-e', '-d', $node->connstr('parallel'), $archive ], 'pg_restore restores the archive in parallel');
foreach my $db (qw(plain parallel))
{
	is($node->safe_psql($db, $definitions), $want, "$db: the index definitions are the same");
	is($node->safe_psql($db, $rows), $want_rows, "$db: the rows are the same");
	check_clean($node, "$db: indexes are sound", db => $db);
	is($node->safe_psql($db, q{SELECT count(*) FROM pg_index WHERE indisclustered}), 1, "$db: the table is still clustered on its index");
}
# The operator classes are in the schema of a B-tree's classes, so the extension may be in another schema.
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere TEMPLATE template0');
$node->safe_psql('elsewhere', 'CREATE SCHEMA own; CREATE EXTENSION pg_lsm SCHEMA own');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr('elsewhere') ], 'a dump can be restored where the extension is in another schema');
is($node->safe_psql('elsewhere', $definitions), $want, 'the definitions are the same where the extension is in another schema');
is($node->safe_psql('elsewhere', q{SET search_path = ''; CREATE INDEX ON public.t USING lsm (s varchar_pattern_ops); SELECT 1}), 1, 'operator classes are found without a search_path');
$node->safe_psql('elsewhere', 'DROP TABLE t, e, p, c, u CASCADE; DROP OPERATOR CLASS back_ops USING lsm CASCADE; DROP EXTENSION pg_lsm');
is($node->safe_psql('elsewhere', q{SELECT count(*) FROM pg_opclass c JOIN pg_opfamily f ON f.oid = opcfamily WHERE opcmethod NOT IN (SELECT oid FROM pg_am) OR opfmethod NOT IN (SELECT oid FROM pg_am)}), 0,
	'DROP EXTENSION drops them');
# A copy of a database copies the index files unchanged.
$node->safe_psql('postgres', 'CREATE DATABASE wal_copy TEMPLATE plain STRATEGY wal_log');
$node->safe_psql('postgres', 'CREATE DATABASE file_copy TEMPLATE plain STRATEGY file_copy');
foreach my $db (qw(wal_copy file_copy))
{
	check_clean($node, "$db: indexes are sound", db => $db);
	$node->safe_psql($db, q{INSERT INTO t (k, s) SELECT i % 100, 'copy' FROM generate_series(1, 300) i});
	check_clean($node, "$db: indexes after writes", db => $db);
}
$node->safe_psql('postgres', 'DROP DATABASE file_copy');
# The copy through WAL survives a crash.
$node->stop('immediate');
$node->start;
check_clean($node, 'wal_copy: indexes are sound after a crash', db => 'wal_copy');
$node->safe_psql('postgres', 'DROP DATABASE wal_copy');
$node->safe_psql('postgres', 'DROP DATABASE parallel');

# pg_upgrade takes over the index files, whatever the new version is. The old cluster is copied first, because some modes
# destroy it.
$node->stop;
my $old_bindir = $node->config_data('--bindir');
my $sockets = PostgreSQL::Test::Utils::tempdir_short();
my $upgrade = sub {
	my ($to, @mode) = @_;
	my $copy = $to->basedir . '/old';
	my $bindir = $to->config_data('--bindir');

	system_or_bail('cp', '-a', $node->data_dir, $copy);
	chdir $to->basedir or die $!;
	return 'pg_upgrade', '--no-sync', '-d', $copy, '-D', $to->data_dir, '-b', $old_bindir, '-B', $bindir,
	  '-s', $sockets, '-p', $node->port, '-P', $to->port, @mode;
};
# A server that does not preload the library cannot take over the files.
my $bare = new_node('bare', init => $plain_init->($version), conf => "fsync = off\nshared_preload_libraries = ''\n");
$bare->command_checks_all([ $upgrade->($bare) ], 1, [qr/Restoring database schemas/], [], 'pg_upgrade refuses a server without the library');
foreach my $mode ('--copy', '--link', $version >= 18 ? '--swap' : ())
{
	my $new = new_node("new_" . ($mode =~ s,--,,r), init => $plain_init->($version), conf => "fsync = off\n");

	# Before 18, copying is the default and has no name.
	$new->command_ok([ $upgrade->($new, $mode eq '--copy' ? () : $mode) ], "pg_upgrade $mode succeeds");
	$new->start;
	foreach my $db (qw(postgres plain))
	{
		is($new->safe_psql($db, $definitions), $want, "$mode, $db: the index definitions are the same");
		check_clean($new, "$mode, $db: indexes are sound", db => $db);
		$new->safe_psql($db, q{INSERT INTO t (k, s) SELECT i % 100, 'upgraded' FROM generate_series(1, 300) i; DELETE FROM t WHERE k < 20});
		$new->safe_psql($db, 'VACUUM t');
		check_clean($new, "$mode, $db: indexes are sound after writes", db => $db);
	}
	$new->stop;
	chdir '/' or die $!;
}
done_testing();
