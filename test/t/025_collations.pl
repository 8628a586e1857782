# Which collations order text as bytes, for each provider, and what happens to an index when the order of its keys
# changes. An index that compares bytes is rejected. If an index compares with a function, lsm_check finds the change.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('collations', conf => "fsync = off\nenable_seqscan = off\nenable_bitmapscan = off\n");
$node->start;
my $version = $node->safe_psql('postgres', 'SHOW server_version_num') / 10000;
my $icu = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'});
my $icu_column = $version >= 17 ? 'colllocale' : 'colliculocale';

sub storage
{
	my ($database, $index) = @_;
	return $node->safe_psql($database, "SELECT string_agg(storage, ' ' ORDER BY ordinal) FROM lsm_index_columns('$index')");
}

# Create a database with these options. Check how it stores text, and in which order the index has some words.
sub check_database
{
	my ($name, $options, $expected) = @_;

	my ($ret, $out, $err) = $node->psql('postgres', "CREATE DATABASE $name TEMPLATE template0 $options");

	SKIP:
	{
		skip "$name: $err", 3 if $ret != 0;
		$node->safe_psql($name, q{
			CREATE EXTENSION pg_lsm;
			CREATE TABLE w (t text, v varchar(20), c char(12), n int);
			CREATE INDEX w_t ON w USING lsm (t, v, c, n);
			INSERT INTO w SELECT x, x, x, n FROM unnest('{a,B,b,A,"a ",aa,"a-a","a_b",Zz,zZ,"",1,10,2,~}'::text[]) WITH ORDINALITY u (x, n);
			INSERT INTO w SELECT chr(i), chr(i), chr(i), i FROM generate_series(1, 127) i;
		});
		$node->safe_psql($name, q{INSERT INTO w SELECT chr(i), chr(i), chr(i), i FROM generate_series(128, 70000, 97) i WHERE i NOT BETWEEN 55296 AND 57343})
			if $options =~ /UTF8/;
		is(storage($name, 'w_t'), "$expected $expected $expected $expected", "$name: text is stored as $expected");
		my $query = 'SELECT t, v, c, n FROM w ORDER BY t, v, c, n';
		is($node->safe_psql($name, $query), $node->safe_psql($name, "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on; $query"),
			"$name: the index has the order of a sort");
		is($node->psql($name, q{SELECT lsm_check('w_t', true)}), 0, "$name: the index is sound");
	}
}

check_database('c', q{LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'UTF8'}, 'bytes');
check_database('ascii', q{LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'SQL_ASCII'}, 'bytes');
check_database('libc', q{LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8' ENCODING 'UTF8'}, 'bytes');
# C.UTF-8 orders text as bytes only if the database's encoding is UTF8.
check_database('libc_ascii', q{LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8' ENCODING 'SQL_ASCII'}, 'function');
check_database('english', q{LC_COLLATE 'en_US.UTF-8' LC_CTYPE 'en_US.UTF-8' ENCODING 'UTF8'}, 'function');
check_database('icu', q{LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C' ENCODING 'UTF8'}, 'function') if $icu;
check_database('builtin_c', q{LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C' LOCALE 'C' ENCODING 'UTF8'}, 'bytes');
check_database('builtin', q{LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C' ENCODING 'UTF8'}, 'bytes');
check_database('unicode', q{LOCALE_PROVIDER builtin BUILTIN_LOCALE 'PG_UNICODE_FAST' LOCALE 'C' ENCODING 'UTF8'}, 'bytes');

# Each command must report that the keys of the index may now be ordered differently.
sub check_refused
{
	my ($index, $name) = @_;

	foreach my $query ("SELECT t FROM words WHERE t >= 'b' ORDER BY t", q{INSERT INTO words VALUES ('x')}, "SELECT lsm_check('$index')", 'VACUUM words')
	{
		my ($ret, $out, $err) = $node->psql('postgres', $query);

		like($err, qr/ERROR:  keys of index "$index" are not coded as .*require\nDETAIL:  The order of column 1 has changed.*\n(.*\n)?HINT:  Please REINDEX it/, "$name: $query");
	}
}

sub check_found
{
	my ($index, $name) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', "SELECT lsm_check('$index')");

	like($err, qr/ERROR:  index "$index" is corrupted at block .*\nDETAIL:  Its keys are compared by functions\..*\n(.*\n)?HINT:  Please REINDEX it/,
		"$name: lsm_check finds that entries are not in order");
	$node->safe_psql('postgres', "REINDEX INDEX $index");
	is($node->psql('postgres', "SELECT lsm_check('$index', true)"), 0, "$name: REINDEX repairs it");
}

# Enough words for several pages.
my $words = q{SELECT w || i FROM unnest('{a,A,b,B,ä,o,ö,p,z,Z,_a,-b}'::text[]) w, generate_series(1, 40) i};

$node->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');
SKIP:
{
	skip 'no ICU', 28 if !$icu;
	# In an older libc, C.UTF-8 has rules. Simulate the change by switching the collation to ICU.
	$node->safe_psql('postgres', qq{
		CREATE COLLATION plain (provider = libc, locale = 'C.UTF-8');
		CREATE TABLE words (t text COLLATE plain);
		CREATE INDEX words_t ON words USING lsm (t);
		INSERT INTO words $words;
	});
	is(storage('postgres', 'words_t'), 'bytes', 'C.UTF-8 is stored as bytes');
	$node->safe_psql('postgres', qq{SET allow_system_table_mods = on;
		UPDATE pg_collation SET collprovider = 'i', $icu_column = 'en', collcollate = NULL, collctype = NULL WHERE collname = 'plain'});
	check_refused('words_t', 'an index that compares bytes is rejected under another collation');
	$node->safe_psql('postgres', 'REINDEX INDEX words_t');
	is(storage('postgres', 'words_t'), 'function', 'after REINDEX, a function compares the keys');
	check_clean($node, 'after REINDEX, the index is sound');

	# An index made with rules still works without them if the order is the same.
	$node->safe_psql('postgres', qq{
		DELETE FROM words WHERE t !~ '^[a-z][0-9]*\$';
		REINDEX INDEX words_t;
		UPDATE pg_collation SET collprovider = 'c', $icu_column = NULL, collcollate = 'C.UTF-8', collctype = 'C.UTF-8' WHERE collname = 'plain'});
	is(storage('postgres', 'words_t'), 'function', 'an index keeps the coding that it was built with');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM words WHERE t >= 'b' AND t < 'o'}),
		$node->safe_psql('postgres', q{SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM words WHERE t >= 'b' AND t < 'o'}),
		'an index built with rules can be read without them');
	$node->safe_psql('postgres', 'DROP TABLE words; DROP COLLATION plain');

	# Switch to other ICU rules, as another version of the library might have.
	foreach my $case ([ 'upper case first', 'en', 'en-u-kf-upper' ], [ 'letters of another language', 'en', 'sv' ], [ 'digits as numbers', 'en', 'en-u-kn-true' ])
	{
		my ($name, $before, $after) = @$case;

		$node->safe_psql('postgres', qq{
			CREATE COLLATION moves (provider = icu, locale = '$before');
			CREATE TABLE words (t text COLLATE moves, n int);
			CREATE INDEX words_t ON words USING lsm (n, t DESC);
			INSERT INTO words SELECT w, 1 FROM ($words) x (w);
			SELECT lsm_check('words_t', true);
		});
		# This has the effect of a changed library and ALTER COLLATION ... REFRESH VERSION.
		$node->safe_psql('postgres', qq{UPDATE pg_collation SET $icu_column = '$after', collversion = 'another' WHERE collname = 'moves'});
		my ($ret, $out, $err) = $node->psql('postgres', q{SELECT count(*) FROM words WHERE t > 'b' COLLATE moves});

		like($err, qr/WARNING:  collation "moves" has version mismatch/, "$name: core warns");
		$node->safe_psql('postgres', 'ALTER COLLATION moves REFRESH VERSION');
		check_found('words_t', $name);
		$node->safe_psql('postgres', 'DROP TABLE words; DROP COLLATION moves');
	}

	# The order and equality of these words are the same in both locales, but the sort keys, and so the hashes, differ.
	$node->safe_psql('postgres', qq{
		SET pg_lsm.debug_segment_size = 64; SET pg_lsm.debug_page_entries = 0;
		CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TYPE loose_pair AS (a int, t text COLLATE loose);
		CREATE TABLE words (t text COLLATE loose, p loose_pair);
		INSERT INTO words SELECT t, (1, t)::loose_pair FROM (SELECT translate(md5(i::text), '0123456789', 'ghijklmnop') FROM generate_series(1, 5000) i) x (t);
		CREATE UNIQUE INDEX words_t ON words USING lsm (t);
		CREATE INDEX words_a ON words USING lsm ((ARRAY[t]));
		CREATE INDEX words_p ON words USING lsm (p);
		CREATE TABLE sought AS SELECT t, p FROM words LIMIT 100});
	my $find = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT (SELECT count(*) FROM sought s, words w WHERE w.t = s.t), '
		. '(SELECT count(*) FROM sought s, words w WHERE ARRAY[w.t] = ARRAY[s.t]), (SELECT count(*) FROM sought s, words w WHERE w.p = s.p)';
	is($node->safe_psql('postgres', $find), '100|100|100', 'lookups under a nondeterministic collation find all rows');
	$node->safe_psql('postgres', qq{UPDATE pg_collation SET $icu_column = 'und-u-ks-level1' WHERE collname = 'loose'});
	is($node->safe_psql('postgres', $find), '100|100|100', 'so do lookups after the sort keys have changed');
	my ($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO words SELECT * FROM sought');
	like($err, qr/duplicate key value violates unique constraint "words_t"/, 'so does the unique check');
	is($node->psql('postgres', q{SELECT lsm_check('words_t', true), lsm_check('words_a', true), lsm_check('words_p', true)}), 0, 'the indexes are sound');
	$node->safe_psql('postgres', 'DROP TABLE words, sought; DROP TYPE loose_pair; DROP COLLATION loose');
}

# Replacing the comparison function simulates any change of the order.
$node->safe_psql('postgres', q{
	CREATE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN btint4cmp(a, b); END';
	CREATE OPERATOR CLASS tens FOR TYPE int USING lsm AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 by_tens(int, int);
	CREATE TABLE numbers (k int, n int);
	CREATE INDEX numbers_k ON numbers USING lsm (k tens) INCLUDE (n);
	INSERT INTO numbers SELECT i * 7 % 400, i FROM generate_series(1, 400) i;
	INSERT INTO numbers VALUES (1000, 0);
	SELECT lsm_check('numbers_k', true);
});
foreach my $case ([ 'reverse order', 'btint4cmp(b, a)' ], [ 'another order of few', 'CASE WHEN 1000 IN (a, b) THEN btint4cmp(b, a) ELSE btint4cmp(a, b) END' ])
{
	my ($name, $expression) = @$case;

	$node->safe_psql('postgres', 'CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN btint4cmp(a, b); END$$; REINDEX INDEX numbers_k');
	$node->safe_psql('postgres', "CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$BEGIN RETURN $expression; END\$\$");
	check_found('numbers_k', $name);
}
# Commands on such an index may fail but harm nothing else, and REINDEX repairs the index.
foreach my $expression ('btint4cmp(b, a)', 'CASE WHEN a % 7 = 3 OR b % 7 = 3 THEN btint4cmp(b, a) ELSE btint4cmp(a, b) END', 'btint4cmp(a # 85, b # 85)', 'btint4cmp(a % 10, b % 10)', 'btint4cmp(a * 1000003 % 1009, b * 1000003 % 1009)', '1')
{
	$node->safe_psql('postgres', 'CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN btint4cmp(a, b); END$$; REINDEX INDEX numbers_k; INSERT INTO numbers SELECT i, i FROM generate_series(1, 300) i');
	$node->safe_psql('postgres', "CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$BEGIN RETURN $expression; END\$\$");
	$node->psql('postgres', "SET statement_timeout = '3s'; $_")
		foreach 'INSERT INTO numbers SELECT i, i FROM generate_series(1, 300) i', 'INSERT INTO numbers VALUES (5, 5)', q{SELECT lsm_compact('numbers_k')}, 'SELECT count(*) FROM numbers WHERE k > 5',
		'DELETE FROM numbers WHERE n % 3 = 0', 'VACUUM numbers', 'INSERT INTO numbers SELECT i, -1 FROM generate_series(1, 300) i', q{SELECT lsm_compact('numbers_k')},
		'SELECT k FROM numbers ORDER BY k DESC', 'DELETE FROM numbers WHERE n = -1', 'VACUUM numbers';
	# A merge that never ends would fill the disk.
	cmp_ok($node->safe_psql('postgres', q{SELECT pg_relation_size('numbers_k')}), '<', 16 * 1024 * 1024, "no endless merge under the order $expression");
	$node->safe_psql('postgres', 'CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN btint4cmp(a, b); END$$; REINDEX INDEX numbers_k');
	is($node->psql('postgres', q{SELECT lsm_check('numbers_k', true)}), 0, "REINDEX repairs the index after work under the order $expression");
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'no crash');
# The change may also make two keys of a unique index equal.
$node->safe_psql('postgres', q{
	DROP INDEX numbers_k;
	CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN btint4cmp(a, b); END$$;
	DELETE FROM numbers WHERE ctid NOT IN (SELECT min(ctid) FROM numbers GROUP BY k);
	CREATE UNIQUE INDEX numbers_k ON numbers USING lsm (k tens);
	CREATE OR REPLACE FUNCTION by_tens(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN btint4cmp(a / 10, b / 10); END$$;
});
my ($ret, $out, $err) = $node->psql('postgres', q{SELECT lsm_check('numbers_k', true)});
like($err, qr/ERROR:  .*"numbers_k"/, 'lsm_check reports a unique index whose keys have become equal');
# An index that compares bytes is rejected if its operator class now has another function.
$node->safe_psql('postgres', q{DROP TABLE numbers;
	CREATE TABLE words (t int, n int);
	CREATE OPERATOR CLASS own FOR TYPE int USING lsm AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
	CREATE INDEX words_t ON words USING lsm (t own);
	INSERT INTO words SELECT i, i FROM generate_series(1, 300) i;
	UPDATE pg_amproc SET amproc = 'by_tens'::regproc WHERE amprocfamily = (SELECT oid FROM pg_opfamily WHERE opfname = 'own')});
$node->restart;
foreach my $query ('SELECT lsm_check(\'words_t\')', 'SELECT n FROM words WHERE t = 5', 'INSERT INTO words VALUES (1, 1)')
{
	($ret, $out, $err) = $node->psql('postgres', $query);
	like($err, qr/ERROR:  keys of index "words_t" are not coded as .*require\nDETAIL:  The order of column 1 has changed/, "another function: $query");
}

$node->stop;
done_testing();
