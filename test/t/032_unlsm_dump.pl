# tools/unlsm_dump: a dump with lsm indexes and keys, restored on a server without the library.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $filter = "$FindBin::RealBin/../../tools/unlsm_dump";
plan skip_all => 'needs python3' if system('python3 -c "import sys" 2>/dev/null') != 0;

my $node = start_new_node('with', conf => '');
# Everything that could look like a command for the filter is also in rows, strings, names, comments and bodies.
my $look_alike = q{
COPY public.t FROM stdin;
CREATE INDEX a ON b USING lsm (c) WITH (lsm='true', merge_fanout='4');
ALTER TABLE c ADD PRIMARY KEY (id) WITH (lsm='true'); -- ' " $$ /*
};
$node->safe_psql('postgres', qq{
CREATE TABLE texts (id int PRIMARY KEY WITH (lsm = true), lsm text DEFAULT 'USING lsm' CHECK (lsm <> E'\\\\'';WITH (lsm=true)'));
INSERT INTO texts VALUES (1, \$text\$$look_alike\$text\$), (2, E'\\\\.\\nCREATE EXTENSION pg_lsm;\\n'), (3, '''');
COMMENT ON TABLE texts IS \$text\$$look_alike\$text\$;
CREATE FUNCTION body() RETURNS text LANGUAGE sql AS \$body\$ SELECT \$text\$$look_alike\$text\$::text \$body\$;
CREATE FUNCTION atomic() RETURNS text BEGIN ATOMIC SELECT 1; SELECT 'CREATE INDEX a ON b USING lsm (c);'::text; END;
CREATE VIEW "USING lsm (" AS SELECT 'CREATE INDEX a ON b USING lsm (c); WITH (lsm=true)'::text AS "WITH (lsm='true')";
});
$node->safe_psql('postgres', q{
CREATE TABLE t (k int, s text COLLATE "C", n numeric, d timestamptz, id serial PRIMARY KEY WITH (lsm = true));
INSERT INTO t (k, s, n, d) SELECT i % 100, 's' || i % 10, i / 7.0, now() + i * interval '1 minute' FROM generate_series(1, 800) i;
CREATE INDEX t_k ON t USING lsm (k) WITH (filter_bits = 5);
CREATE INDEX "t;mixed" ON t USING lsm (s DESC, n NULLS FIRST, k DESC NULLS LAST) INCLUDE (id) WITH (merge_fanout = 4, fillfactor = 70, filter_prefix = 1);
CREATE INDEX t_expr ON t USING lsm (lower(s), ((' USING lsm ('::text || s))) WHERE s <> ' USING lsm (';
CREATE INDEX t_pattern ON t USING lsm (s text_pattern_ops);
CREATE INDEX t_btree ON t (k) WITH (fillfactor = 60);
ALTER TABLE t CLUSTER ON t_k;
COMMENT ON INDEX t_k IS 'USING lsm';
CREATE TABLE e (k int, CONSTRAINT e_k EXCLUDE USING lsm (k WITH =) WITH (merge_fanout = 3) DEFERRABLE);
CREATE TABLE p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (50);
CREATE INDEX p_k ON p USING lsm (k, v COLLATE "C");
CREATE TABLE c (id int PRIMARY KEY WITH (merge_fanout = 4, lsm = true, fillfactor = 80), a int UNIQUE NULLS NOT DISTINCT WITH (lsm = true),
	CONSTRAINT c_x UNIQUE (a, id) INCLUDE (a) WITH (fillfactor = 75, lsm = true, deduplicate_items = off) DEFERRABLE, b int UNIQUE);
INSERT INTO c SELECT i, i FROM generate_series(1, 100) i;
ALTER TABLE c REPLICA IDENTITY USING INDEX c_pkey;
CREATE TABLE lsm (lsm int PRIMARY KEY WITH (lsm = true));
CREATE INDEX ON lsm USING lsm (lsm) WHERE lsm > 0;
CREATE FUNCTION back_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS back_ops FOR TYPE int USING lsm AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 back_cmp(int, int);
COMMENT ON OPERATOR CLASS back_ops USING lsm IS 'descending';
CREATE INDEX t_back ON t USING lsm (k back_ops);
CREATE ROLE reader;
GRANT EXECUTE ON FUNCTION lsm_stat_reset() TO reader;
GRANT SELECT ON lsm TO reader;
ALTER DATABASE postgres SET pg_lsm.default_method = lsm;
GRANT EXECUTE ON FUNCTION lsm_health() TO reader;
GRANT SELECT (runs) ON pg_stat_lsm_indexes TO reader;
CREATE SCHEMA app;
CREATE FUNCTION app.lsm_check(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
REVOKE ALL ON FUNCTION app.lsm_check(int) FROM PUBLIC;
GRANT ALL ON FUNCTION app.lsm_check(int) TO reader;
CREATE TABLE "with" (lsm int, x int);
CREATE TABLE words ("with" int, "using" int, lsm int, "on" int, UNIQUE ("with", lsm) WITH (lsm = true));
CREATE INDEX words_using ON words USING lsm ("using", lsm, "with");
});

my $plain = $node->basedir . '/plain.sql';
my $clean = $node->basedir . '/clean.sql';
my $inserts = $node->basedir . '/inserts.sql';
my $quoted = $node->basedir . '/quoted.sql';
$node->command_ok([ 'pg_dump', '-f', $plain, $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'pg_dump', '--create', '--clean', '--if-exists', '-f', $clean, $node->connstr('postgres') ], 'pg_dump --create --clean succeeds');
$node->command_ok([ 'pg_dump', '--inserts', '-f', $inserts, $node->connstr('postgres') ], 'pg_dump --inserts succeeds');
$node->command_ok([ 'pg_dump', '--quote-all-identifiers', '-f', $quoted, $node->connstr('postgres') ], 'pg_dump --quote-all-identifiers succeeds');
command_ok([ 'sh', '-c', "'$filter' < '$_' > '$_.filtered'" ], "the filter accepts $_") foreach $plain, $clean, $inserts, $quoted;
command_fails([ 'sh', '-c', qq{(cat '$plain'; echo "SELECT 'open") | '$filter'} ], 'the filter rejects a dump that ends within a string');
command_fails([ 'sh', '-c', "echo \"SET client_encoding = 'SJIS';\" | '$filter'" ], 'the filter rejects an encoding that it cannot read');

# The filter knows all objects of the extension.
my ($known) = slurp_file($filter) =~ /^LSM_OBJECTS = \{(.*?)\}/ms;
is(join(' ', sort $known =~ /\w+/g), $node->safe_psql('postgres', q{
	SELECT string_agg(DISTINCT name COLLATE "C", ' ' ORDER BY name COLLATE "C") FROM (
		SELECT proname::text AS name, oid, 'pg_proc'::regclass AS kind FROM pg_proc
		UNION ALL SELECT relname, oid, 'pg_class'::regclass FROM pg_class) o
	JOIN pg_depend ON classid = kind AND objid = o.oid AND deptype = 'e'
	JOIN pg_extension e ON refobjid = e.oid AND refclassid = 'pg_extension'::regclass AND extname = 'pg_lsm'}),
	'the filter knows all functions and views');

# The filter does not change a dump without lsm at all.
$node->safe_psql('postgres', 'CREATE DATABASE none');
$node->safe_psql('none', qq{CREATE TABLE t (id int PRIMARY KEY, v text); CREATE INDEX ON t (v); INSERT INTO t VALUES (1, \$text\$$look_alike\$text\$)});
my $none = $node->basedir . '/none.sql';
$node->command_ok([ 'pg_dump', '-f', $none, $node->connstr('none') ], 'pg_dump of a database without lsm succeeds');
command_ok([ 'sh', '-c', "'$filter' < '$none' | cmp - '$none'" ], 'the filter does not change a dump without lsm');

# Restore without the library.
my $bare = PostgreSQL::Test::Cluster->new('bare');
$bare->init;
$bare->append_conf('postgresql.conf', "fsync = off\n");
$bare->start;
$bare->safe_psql('postgres', 'CREATE ROLE reader; CREATE DATABASE plain; CREATE DATABASE inserts; CREATE DATABASE quoted; CREATE DATABASE other');
my $restore = sub {
	my ($db, $file) = @_;

	$bare->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $bare->connstr($db) ], "$file is restored without the library");
};
$restore->('plain', "$plain.filtered");
$restore->('inserts', "$inserts.filtered");
$restore->('quoted', "$quoted.filtered");
$restore->('other', "$clean.filtered");

# The definitions are those of the original with another method, and without the parameters.
my $definitions = q{SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
	UNION ALL SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype IN ('p', 'u', 'x') AND connamespace = 'public'::regnamespace
	UNION ALL SELECT proname || prosrc FROM pg_proc WHERE proname IN ('body', 'atomic')
	UNION ALL SELECT pg_get_functiondef('atomic'::regproc) UNION ALL SELECT definition FROM pg_views WHERE schemaname = 'public' AND viewname !~ '^pg_stat'
	UNION ALL SELECT obj_description('texts'::regclass) UNION ALL SELECT obj_description('t_k'::regclass)
	UNION ALL SELECT attname || pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	UNION ALL SELECT c.relname || x.indisclustered || x.indisreplident FROM pg_index x JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
	UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conrelid = 'texts'::regclass};
my $want = join "\n", sort map { unlsm($_) } split /\n/, $node->safe_psql('postgres', $definitions);
my $rows = q{SELECT (SELECT md5(string_agg(x::text, ' ' ORDER BY id)) FROM texts x), (SELECT md5(string_agg(x::text, ' ' ORDER BY id)) FROM t x), (SELECT count(*) FROM c), body()};
my $want_rows = $node->safe_psql('postgres', $rows);

# The lines of the definitions that belong to an index itself.
sub unlsm
{
	my ($line) = @_;

	return $line unless $line =~ /^CREATE (UNIQUE )?INDEX .* ON (ONLY )?public\.|^e_kEXCLUDE/;
	$line =~ s/ USING lsm / USING btree /;
	$line =~ s/(lsm|merge_fanout|filter_bits|filter_prefix)='\w+'(, )?//g;
	$line =~ s/, \)/)/;
	return $line =~ s/ WITH \(\)//r;
}

foreach my $db (qw(plain inserts quoted postgres))
{
	is(join("\n", sort split /\n/, $bare->safe_psql($db, $definitions)), $want, "$db: the definitions are the same with B-trees");
	is($bare->safe_psql($db, $rows), $want_rows, "$db: the rows are the same");
	is($bare->safe_psql($db, q{SELECT count(*) FROM pg_opclass WHERE opcname = 'back_ops'}), 1, "$db: the operator class is restored");
	is($bare->safe_psql($db, q{SET enable_seqscan = off; SELECT count(*) FROM t WHERE k BETWEEN 5 AND 9}), 40, "$db: an index returns the right rows");
	my ($ret, $out, $err) = $bare->psql($db, 'INSERT INTO c VALUES (1, 1)');
	like($err, qr/duplicate key value violates unique constraint "c_/, "$db: a key rejects duplicates");
	is($bare->safe_psql($db, q{SELECT has_table_privilege('reader', 'lsm', 'SELECT')}), 't', "$db: other grants are kept");
	is($bare->safe_psql($db, q{SELECT has_function_privilege('reader', 'app.lsm_check(int)', 'EXECUTE')}), 't', "$db: grants on a user's function with such a name are kept");
	is($bare->safe_psql($db, q{SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '"with"'::regclass AND attnum > 0}), 'lsm x',
		"$db: a table with the name of a keyword keeps its columns");
}
is($bare->safe_psql('postgres', 'SELECT count(*) FROM pg_db_role_setting'), 0, 'no setting of pg_lsm is left');
$node->stop;
$bare->stop;
done_testing();
