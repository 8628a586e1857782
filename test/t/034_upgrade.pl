# A database of version 0.1.0 is upgraded to the current version, and is then the same as a new one. An old library
# with new SQL objects, and the reverse, are detected.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use File::Basename;
use File::Path qw(make_path);
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $upgrade = "$FindBin::RealBin/../upgrade";
my ($version) = slurp_file("$FindBin::RealBin/../../pg_lsm.control") =~ /default_version = '(.*)'/;

# A server whose files the test may change: links to the installed ones, except for the programs that find the others
# relative to themselves, and for the library.
my $root = PostgreSQL::Test::Utils::tempdir_short();
my %dir = map { chomp(my $d = `pg_config --$_`); ($_ => $d) } qw(bindir pkglibdir sharedir);
foreach my $d (values %dir)
{
	make_path(dirname("$root$d"));
	system_or_bail('cp', '-as', $d, "$root$d");
}
foreach (map { "$dir{bindir}/$_" } qw(postgres pg_ctl initdb pg_config))
{
	unlink "$root$_" or die "$_: $!";
	system_or_bail('cp', $_, "$root$_");
}
my $library = "$root$dir{pkglibdir}/pg_lsm.so";
my $bytes = slurp_file($library, 0);
system_or_bail('cp', "$upgrade/pg_lsm--0.1.0.sql", "$root$dir{sharedir}/extension/");

# Installs a library as packages do: in a file of its own, under the same name.
sub install
{
	my ($content) = @_;

	unlink $library or die $!;
	open my $fh, '>:raw', $library or die $!;
	print $fh $content;
	close $fh;
	chmod 0755, $library;
	return;
}

sub fails
{
	my ($node, $db, $sql, $error, $name) = @_;
	my ($ret, $out, $err) = $node->psql($db, $sql);

	like($err, $error, $name);
	return;
}

# --- The old library in memory, and everything new on disk.

my $without_function = $bytes =~ s/lsm_library_version/lsm_library_versiox/gr;
my $of_past = $bytes =~ s/\Q$version\E\0/0.1.9\0/gr;
ok($of_past ne $bytes, 'the library reports its version');
my $restart = qr/HINT:  Restart the server\. A preloaded library stays in memory/;

install($without_function);
my $node = PostgreSQL::Test::Cluster->new('node', install_path => "$root" . dirname($dir{bindir}));
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_lsm'\nfsync = off\nmax_prepared_transactions = 10\n$LsmTest::tiny");
$node->start;
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(old new);
$node->safe_psql('old', q{CREATE EXTENSION pg_lsm VERSION '0.1.0'});
$node->safe_psql('old', slurp_file("$upgrade/all_kinds.sql"));
check_clean($node, '0.1.0', db => 'old');
foreach ([ $without_function, '0.1.0' ], [ $of_past, '0.1.9' ])
{
	my ($old, $loaded) = @$_;

	install($old);
	$node->restart;
	install($bytes);
	my $error = qr/ERROR:  pg_lsm $version needs version $version of the library, but the server has loaded version $loaded\n.*$restart/s;
	fails($node, 'new', 'CREATE EXTENSION pg_lsm', $error, "the server has loaded $loaded: CREATE EXTENSION");
	fails($node, 'old', 'ALTER EXTENSION pg_lsm UPDATE', $error, "the server has loaded $loaded: ALTER EXTENSION UPDATE");
}
$node->restart;

# --- The new library, and old SQL objects.

check_clean($node, 'the new library with the old objects', db => 'old');
$node->safe_psql('old', $_) foreach q{INSERT INTO t (k, s) SELECT i % 100, 'new library' FROM generate_series(1, 300) i}, 'VACUUM t', q{SELECT lsm_compact('t_k')};
check_clean($node, 'the new library with the old objects, after writes', db => 'old');
my $update = qr/ERROR:  function \S+ and the library are of different versions of pg_lsm\n.*version $version of the library returns \d+.*HINT:  .*ALTER EXTENSION pg_lsm UPDATE/s;
$node->safe_psql('new', qq{
	CREATE FUNCTION runs(regclass, OUT a bigint, OUT b text) RETURNS SETOF record LANGUAGE C AS '\$libdir/pg_lsm', 'lsm_runs';
	CREATE FUNCTION stats(oid, OUT a bigint, OUT b text) LANGUAGE C AS '\$libdir/pg_lsm', 'lsm_stat_index'});
fails($node, 'new', q{SELECT * FROM runs('pg_class')}, $update, 'a set with other columns');
fails($node, 'new', q{SELECT * FROM stats(0)}, $update, 'a row with other columns');
foreach my $view (qw(pg_stat_lsm_indexes pg_stat_progress_lsm_compaction pg_stat_progress_lsm_check))
{
	my ($ret, $out, $err) = $node->psql('old', "SELECT * FROM $view");

	ok($ret == 0 || $err =~ $update, "$view works, or says what to do") or diag($err);
}
$node->safe_psql('new', 'DROP FUNCTION runs, stats');

# --- The upgrade. The catalogs are those of a new database.

my $catalogs = q{
	WITH member AS (
		SELECT classid, objid FROM pg_depend d JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
		WHERE extname = 'pg_lsm' AND deptype = 'e')
	SELECT 'member', pg_describe_object(classid, objid, 0), obj_description(objid, classid::regclass::name),
		(SELECT concat_ws(' ', privtype, initprivs) FROM pg_init_privs i WHERE i.objoid = objid AND i.classoid = classid AND i.objsubid = 0)
	FROM member
	UNION ALL SELECT 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid),
		concat_ws(' ', proacl, prolang, provolatile, proparallel, proisstrict, prosecdef, procost, prorows, probin, prosrc)
	FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
	UNION ALL SELECT 'view', c.oid::regclass::text, pg_get_viewdef(c.oid), relacl::text
	FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
	UNION ALL SELECT 'column', attrelid::regclass || '.' || attname, concat_ws(' ', attnum, atttypid::regtype, attcollation, attacl), col_description(attrelid, attnum)
	FROM member JOIN pg_attribute a ON classid = 'pg_class'::regclass AND objid = attrelid WHERE attnum > 0
	UNION ALL SELECT 'method', amname, amhandler::text, amtype::text
	FROM member JOIN pg_am a ON classid = 'pg_am'::regclass AND objid = a.oid
	UNION ALL SELECT 'class', pg_describe_object(classid, objid, 0), concat_ws(' ', opcdefault, opcintype::regtype, opckeytype::regtype),
		pg_describe_object('pg_opfamily'::regclass, opcfamily, 0)
	FROM member JOIN pg_opclass c ON classid = 'pg_opclass'::regclass AND objid = c.oid
	UNION ALL SELECT 'operator', pg_describe_object('pg_amop'::regclass, a.oid, 0), concat_ws(' ', amoppurpose, amopsortfamily), NULL
	FROM member JOIN pg_amop a ON classid = 'pg_opfamily'::regclass AND objid = amopfamily
	UNION ALL SELECT 'support', pg_describe_object('pg_amproc'::regclass, a.oid, 0), amproc::text, NULL
	FROM member JOIN pg_amproc a ON classid = 'pg_opfamily'::regclass AND objid = amprocfamily
	UNION ALL SELECT 'extension', extname, concat_ws(' ', extversion, extrelocatable, extnamespace::regnamespace, extconfig, extcondition), obj_description(oid, 'pg_extension')
	FROM pg_extension WHERE extname = 'pg_lsm'
	ORDER BY 1, 2, 3};
$node->safe_psql('new', 'CREATE EXTENSION pg_lsm');
$node->safe_psql('old', 'ALTER EXTENSION pg_lsm UPDATE');
my $new = $node->safe_psql('new', $catalogs);
my $upgraded = $node->safe_psql('old', $catalogs);
cmp_ok(() = $new =~ /^\w+\|/mg, '>', 400, 'the list of objects is long');
my %have = map { $_ => 1 } split /\n/, $upgraded;
my %want = map { $_ => 1 } split /\n/, $new;
is(join("\n", grep { !$have{$_} } split /\n/, $new), '', 'the upgrade leaves nothing out');
is(join("\n", grep { !$want{$_} } split /\n/, $upgraded), '', 'the upgrade adds nothing else');
ok($upgraded eq $new, 'both list everything in the same order');
is($node->safe_psql('old', 'SELECT lsm_library_version() = extversion FROM pg_extension WHERE extname = \'pg_lsm\''), 't', 'library and objects match');

check_clean($node, 'upgraded', db => 'old');
$node->safe_psql('old', $_) foreach q{INSERT INTO t (k, s) SELECT i % 100, 'upgraded' FROM generate_series(1, 300) i}, 'DELETE FROM t WHERE k < 20', 'VACUUM t',
  'SELECT * FROM pg_stat_lsm_indexes';
check_clean($node, 'upgraded, after writes', db => 'old');
$node->stop;
done_testing();
