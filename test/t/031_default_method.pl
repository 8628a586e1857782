# Indexes made under pg_lsm.default_method survive pg_dump and pg_upgrade.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('old', conf => "fsync = off\n");
$node->start;
my $newer = $node->safe_psql('postgres', 'SHOW server_version_num') >= 180000;
my $methods = q{SELECT c.oid::regclass, a.amname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE c.relkind IN ('i', 'I') AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname};

# A database whose default is lsm, with keys of both methods. Before 18, a key that a foreign key in the same statement
# refers to becomes a B-tree, and so do the keys of partitioned tables and partitions.
my $schema = q{
CREATE TABLE lsm_keys (id int PRIMARY KEY, a int UNIQUE WITH (fillfactor = 90), b text, CONSTRAINT ab UNIQUE (a, b) DEFERRABLE);
CREATE INDEX lsm_keys_b ON lsm_keys (b, a);
CREATE INDEX lsm_keys_btree ON lsm_keys USING btree (b, a);
CREATE TABLE btree_keys (id int PRIMARY KEY WITH (lsm = false), a int);
CREATE TABLE parents (id int PRIMARY KEY, parent int REFERENCES parents);
CREATE TABLE parts (id int PRIMARY KEY, a int) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts2 PARTITION OF parts (UNIQUE (a)) FOR VALUES FROM (500) TO (1000);
CREATE INDEX parts_a ON parts (a);
INSERT INTO lsm_keys SELECT i, i, 'b' || i FROM generate_series(1, 300) i;
INSERT INTO btree_keys SELECT i, i FROM generate_series(1, 300) i;
INSERT INTO parents SELECT i, i FROM generate_series(1, 300) i;
INSERT INTO parts SELECT i, i FROM generate_series(1, 900) i;
};
$node->safe_psql('postgres', "CREATE DATABASE made; ALTER DATABASE made SET pg_lsm.default_method = lsm");
$node->safe_psql('made', 'CREATE EXTENSION pg_lsm');
$node->safe_psql('made', $schema);
my $made = $node->safe_psql('made', $methods);
my $unsuited = $newer ? 'lsm|{lsm=true}' : 'btree|';
is($made, "ab|lsm|{lsm=true}
btree_keys_pkey|btree|
lsm_keys_a_key|lsm|{fillfactor=90,lsm=true}
lsm_keys_b|lsm|
lsm_keys_btree|btree|
lsm_keys_pkey|lsm|{lsm=true}
parents_pkey|$unsuited
parts1_a_idx|lsm|
parts1_pkey|$unsuited
parts2_a_idx|lsm|
parts2_a_key|$unsuited
parts2_pkey|$unsuited
parts_a|lsm|
parts_pkey|$unsuited", 'methods');

# A dump restores the same methods while the default is btree. PGOPTIONS overrides the database's setting.
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('made') ], 'pg_dump');
like(slurp_file($dump), qr/ADD CONSTRAINT lsm_keys_pkey PRIMARY KEY \(id\) WITH \(lsm='true'\)/, 'a dump names the method of a key');
my $restore = sub {
	my ($db, $options) = @_;
	local $ENV{PGOPTIONS} = $options;

	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr($db) ], "the dump is restored into $db");
	check_clean($node, "$db: indexes", db => $db);
	return $node->safe_psql($db, $methods);
};
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0") foreach qw(plain as_dumped turned);
$node->safe_psql('postgres', "ALTER DATABASE $_ SET pg_lsm.default_method = lsm") foreach qw(as_dumped turned);
is($restore->('plain', ''), $made, 'the restored indexes have the same methods');
is($restore->('as_dumped', '-c pg_lsm.default_method=btree'), $made, "PGOPTIONS keeps the methods despite the database's setting");
# If the default is lsm, the restore turns keys that were B-trees into lsm, but leaves indexes as they were. Before 18,
# it then fails at the foreign key, which needs a B-tree.
if ($newer)
{
	is($restore->('turned', ''), $made =~ s/(btree_keys_pkey)\|btree\|/$1|lsm|{lsm=true}/r, 'the default changes keys of a dump to lsm');
}
else
{
	local $ENV{PGOPTIONS} = '';
	$node->command_checks_all([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('turned') ], 3, [],
		[ qr/only b-tree indexes are supported for foreign keys.*HINT:.*lsm = false/s ], 'the error of a foreign key says what to do');
	is($node->safe_psql('turned', $methods) =~ s/\bparents_pkey\|lsm\|\{lsm=true\}/parents_pkey|btree|/r,
		$made =~ s/(btree_keys_pkey)\|btree\|/$1|lsm|{lsm=true}/r, 'the default changes keys of a dump to lsm');
}
$node->safe_psql('postgres', 'DROP DATABASE plain; DROP DATABASE as_dumped; DROP DATABASE turned');

# pg_upgrade must not change the method of a key, because it keeps the index's file.
$node->stop;
my $bindir = $node->config_data('--bindir');
my $new = new_node('new', conf => "fsync = off\npg_lsm.default_method = lsm\n");
chdir $new->basedir or die $!;
$node->command_ok([ 'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
	'-s', PostgreSQL::Test::Utils::tempdir_short(), '-p', $node->port, '-P', $new->port ], 'pg_upgrade succeeds');
$new->start;
is($new->safe_psql('made', $methods), $made, 'upgraded: the methods are the same');
is($new->safe_psql('made', 'SHOW pg_lsm.default_method'), 'lsm', 'upgraded: the database keeps its setting');
check_clean($new, 'upgraded: indexes are sound', db => 'made');
$new->safe_psql('made', 'INSERT INTO btree_keys VALUES (1) ON CONFLICT DO NOTHING; INSERT INTO lsm_keys VALUES (1) ON CONFLICT DO NOTHING');
is($new->safe_psql('made', 'SELECT (SELECT count(*) FROM btree_keys), (SELECT count(*) FROM lsm_keys)'), '300|300', 'upgraded: keys reject duplicates');
$new->stop;
done_testing();
