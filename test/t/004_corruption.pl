# Damages index files. Whatever the damage to a page, each query returns the right rows, or an error that names the
# index and the block. Nothing crashes or hangs, and lsm_check finds the damage.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{PG_LSM_SEED} // 1;
srand($seed);
note("seed $seed");

# The server's own checksums would detect all this before lsm does.
my $version = PostgreSQL::Test::Cluster->new('version')->pg_version;
my $limit = 30 * $slowness;		# of a statement, in seconds
my $node = new_node('damaged', init => { extra => $version >= 18 ? ['--no-data-checksums'] : [] }, conf => "
fsync = off
restart_after_crash = on
statement_timeout = '${limit}s'
max_locks_per_transaction = 256
pg_lsm.batch_inserts = off		# there must be sealed pages
");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');

# One small table for each case. Some have encoded keys, others tuple keys. All have included columns.
my @cases;
foreach my $kind (qw(meta gate map sealed open leaf filter fence directory))
{
	push @cases, map { { kind => $kind, what => 'flip', n => $_ } } 1 .. 10;
	push @cases, map { { kind => $kind, what => $_ } } qw(zero garbage swap ignored);
	# A page that belongs to another segment was freed and used again. If the newest version also names it, a write was
	# lost.
	push @cases, { kind => $kind, what => 'stale' } if $kind =~ /sealed|open|leaf|filter|fence|directory/;
}
push @cases, { kind => 'file', what => $_ } foreach qw(truncate0 truncate1 truncate_half truncate_last);
push @cases, map { { kind => 'meta', what => $_ } } qw(future_version version_1 version_3 magic);
my $n = 0;
foreach my $case (@cases)
{
	$case->{table} = 'd' . $n++;
	$case->{index} = "$case->{table}_idx";
	$case->{name} = join ' ', grep { defined } $case->{index}, @{$case}{qw(what kind n)};
}
$node->safe_psql('postgres', join '', map {
		my $t = $cases[$_]{table};
		my $filter = $cases[$_]{kind} eq 'filter';
		my $type = $_ % 2 && !$filter ? 'numeric' : 'int';

		($filter ? 'SET' : 'RESET') . ' pg_lsm.debug_segment_size' . ($filter ? ' = 64' : '') . ";
		CREATE TABLE $t (k $type, s text COLLATE \"C\", id int) WITH (autovacuum_enabled = off);
		CREATE INDEX ${t}_idx ON $t USING lsm (k, s DESC) INCLUDE (id);
		INSERT INTO $t SELECT (i * 37) % 60, 's' || i % 7, i FROM generate_series(1, 158) i;
		DELETE FROM $t WHERE id % 10 = 0;\n" . ($filter ? "SELECT lsm_compact('${t}_idx');\n" : '');
	} 0 .. $#cases);
$node->safe_psql('postgres', 'VACUUM');
foreach my $case (@cases)
{
	my $t = $case->{table};

	$case->{rows} = $node->safe_psql('postgres', "SELECT md5(string_agg(ROW(k, s, id)::text, ' ' ORDER BY k, s DESC, ctid)) FROM $t");
	$case->{rows_by_id} = $node->safe_psql('postgres', "SELECT md5(string_agg(ROW(k, s, id)::text, ' ' ORDER BY k, s DESC, id)) FROM $t");
	$case->{file} = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('${t}_idx')");
	$case->{runs} = [ split /\n/, $node->safe_psql('postgres', "SELECT run_id FROM lsm_runs('${t}_idx')") ];
}
$node->stop;

$_->{live} = live_ids($_->{file}, @{ $_->{runs} }) foreach @cases;
damage($_) foreach @cases;
$node->start;
judge($_) foreach @cases;

is($node->safe_psql('postgres', 'SELECT 1'), 1, 'the server is still alive');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'no process has crashed');

# REINDEX repairs all indexes.
$node->safe_psql('postgres', join '', map { "REINDEX INDEX $_->{index};\n" } @cases);
check_clean($node, 'REINDEX repairs all indexes');
$node->stop;

# Entries that point beyond the end of the table.
$node->start;
$node->safe_psql('postgres', q{
	CREATE TABLE beyond (k int);
	INSERT INTO beyond SELECT generate_series(1, 50);
	CREATE INDEX beyond_k ON beyond USING lsm (k);
});
my $beyond = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('beyond_k')});
$node->stop;
my ($leaf) = grep { $_->{kind} eq 'leaf' } page_kinds($beyond);
my $leaf_page = page_read($beyond, $leaf->{block});
substr($leaf_page, 28, 8) = pack 'LL', 1000000, 1000000;		# base_block, last_block
set_crc(\$leaf_page);
page_write($beyond, $leaf->{block}, $leaf_page);
$node->start;
my ($beyond_ret, $beyond_out, $beyond_err) = $node->psql('postgres', q{SELECT lsm_check('beyond_k')});
like($beyond_err, qr/index "beyond_k" .*block $leaf->{block}: entry \d+ points to block 1000000 of the table, which has 1 blocks/, 'lsm_check reports an entry beyond the end of the table');
my (undef, $still_shown) = $node->psql('postgres', q{SELECT lsm_check('beyond_k'); SELECT count(*) FROM pg_stat_progress_lsm_check},
	on_error_stop => 0);
is($still_shown, '0', 'lsm_check shows no progress after an error');
$node->safe_psql('postgres', 'DROP TABLE beyond');

# A leaf does not belong to the segment that names it. If VACUUM passed over the leaf, its entries would stay and later
# lead to wrong rows.
foreach my $lost ('empty', "another's")
{
	my ($file, @leaves) = make_leaves('lost');
	cmp_ok(scalar @leaves, '>', 10, 'the segment has many leaves');
	my $page = "\0" x 8192;
	if ($lost ne 'empty')
	{
		$page = page_read($file, $leaves[5]{block});
		substr($page, 8192 - 32, 8) = pack 'Q', $leaves[5]{owner} + 1000;
		set_crc(\$page);
	}
	page_write($file, $leaves[5]{block}, $page);
	$node->start;
	$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM lost WHERE k > 150');
	my ($lost_ret, $lost_out, $lost_err) = $node->psql('postgres', 'VACUUM lost');
	like($lost_err, qr/ERROR:  index "lost_k" is corrupted at block $leaves[5]{block}: page does not belong to the segment/, "$lost: VACUUM reports a leaf of another segment");
	$node->safe_psql('postgres', 'DROP TABLE lost');
}

# A leaf counts an entry that it does not have. VACUUM raises an error before it changes the page, and the server goes on.
my ($miscounted, @counted) = make_leaves('miscounted');
my $counting = $counted[-1];
my $counting_page = page_read($miscounted, $counting->{block});
substr($counting_page, 24, 2) = pack 'S', unpack('S', substr($counting_page, 24, 2)) + 1;		# entry_count
set_crc(\$counting_page);
page_write($miscounted, $counting->{block}, $counting_page);
$node->start;
$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM miscounted WHERE k > 100');
my (undef, undef, $counting_err) = $node->psql('postgres', 'VACUUM miscounted');
like($counting_err, qr/ERROR:  index "miscounted_k" is corrupted at block $counting->{block}: entries cannot be removed/, 'VACUUM reports a wrong number of entries');
$node->safe_psql('postgres', 'DROP TABLE miscounted');
unlike(slurp_file($node->logfile), qr/PANIC/, 'the server has not gone down');

# An open page has no checksum. Every process that reads its layout reports damage, not only the process that read the
# page from disk.
my ($open, $open_block) = make_open_page('open');
my $open_page = page_read($open, $open_block);
substr($open_page, 12, 2) = pack 'S', unpack('S', substr($open_page, 12, 2)) - 20;		# pd_lower: ten items less
page_write($open, $open_block, $open_page);
$node->start;
foreach my $query (('SET enable_seqscan = off; SELECT count(*) FROM open WHERE k > 0') x 2, 'INSERT INTO open VALUES (0)', 'DELETE FROM open; VACUUM open')
{
	my ($open_ret, $open_out, $open_err);

	($open_ret, $open_out, $open_err) = $node->psql('postgres', $_) foreach split /(?<=open); /, $query;
	like($open_err, qr/ERROR:  index "open_k" is corrupted at block $open_block: items do not fill their area/, "a damaged open page: $query");
}
$node->safe_psql('postgres', 'DROP TABLE open');

# Open pages with entries that no row can have: their offsets are 0.
my ($nowhere, $nowhere_block) = make_open_page('nowhere');
my $nowhere_page = page_read($nowhere, $nowhere_block);
substr($nowhere_page, $_ + 4, 2) = "\0\0" foreach unpack 'S*', substr($nowhere_page, 24, unpack('S', substr($nowhere_page, 12, 2)) - 24);
page_write($nowhere, $nowhere_block, $nowhere_page);
$node->start;
foreach my $query (q{SELECT lsm_check('nowhere_k')}, 'SET enable_seqscan = off; SELECT count(k) FROM nowhere WHERE k > 0')
{
	my (undef, undef, $nowhere_err) = $node->psql('postgres', $query);

	like($nowhere_err, qr/index "nowhere_k" .*block $nowhere_block: .*TID is invalid/, "entries with the offset 0 are reported: $query");
}
$node->safe_psql('postgres', 'DROP TABLE nowhere');

# A map page that says that all blocks are free. The edit that seals the open page takes its block for the next one.
my ($twice, $twice_block) = make_open_page('twice');
my $twice_map = page_read($twice, 3);
substr($twice_map, 24, 8160 - 24) = "\x0F" . "\0" x (8160 - 25);
set_crc(\$twice_map);
page_write($twice, 3, $twice_map);
my $twice_meta = page_read($twice, 0);
substr($twice_meta, 24 + 44, 8) = pack 'LL', 1000, $twice_block;		# free_blocks, search_small
set_crc(\$twice_meta);
page_write($twice, 0, $twice_meta);
$node->start;
my (undef, undef, $twice_err) = $node->psql('postgres', q{SET pg_lsm.debug_buffer_entries = 5; INSERT INTO twice VALUES (0)}, timeout => 2 * $limit);
like($twice_err, qr/ERROR:  index "twice_k" is corrupted at block $twice_block: block is in use twice/, 'an edit does not lock a block twice');
$node->safe_psql('postgres', 'DROP TABLE twice');

# Two records with the id of the open run, whose page is not the one that the manifest names: lsm_runs ends.
$node->safe_psql('postgres', q{
	CREATE TABLE same_id (k int);
	CREATE INDEX same_id_k ON same_id USING lsm (k);
	INSERT INTO same_id SELECT generate_series(1, 500);
	INSERT INTO same_id VALUES (1);
});
my $same_id = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('same_id_k')});
$node->stop;
my $same_id_meta = page_read($same_id, 0);
my $same_id_count = unpack 'L', substr($same_id_meta, 24 + 36, 4);
my %place = map { unpack('C', substr($same_id_meta, $_ + 62, 1)) => $_ } map { 24 + 576 + 64 * $_ } 0 .. $same_id_count - 1;
my ($open, $packed) = @place{ 1, 3 };
ok($open && $packed, 'the index has an open run and a packed one');
substr($same_id_meta, $open + 32, 4) = pack 'L', 2;		# start
my ($first, $second) = sort { $a <=> $b } $open, $packed;
my $record = substr($same_id_meta, $open, 64);
substr($same_id_meta, $second, 64) = $record;
substr($record, 62, 1) = pack 'C', 4;		# spent
substr($same_id_meta, $first, 64) = $record;
set_crc(\$same_id_meta);
page_write($same_id, 0, $same_id_meta);
$node->start;
my (undef, undef, $same_id_err) = $node->psql('postgres', q{SELECT count(*) FROM lsm_runs('same_id_k')});
like($same_id_err, qr/index "same_id_k" is corrupted at block 2: page does not belong to the run/, 'lsm_runs reports two runs with one id');
$node->safe_psql('postgres', 'DROP TABLE same_id');

# A meta page that says that the space map covers 16 TB: nobody extends the file to that size.
$node->safe_psql('postgres', q{
	CREATE TABLE long (k int);
	CREATE INDEX long_k ON long USING lsm (k);
	INSERT INTO long SELECT generate_series(1, 500);
	INSERT INTO long VALUES (1);
});
my $long = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('long_k')});
$node->stop;
my $long_meta = page_read($long, 0);
my $long_size = -s $long;
substr($long_meta, 24 + 40, 8) = pack 'LL', 0x7FFFFFFF, 0;		# mapped_end, free_blocks
set_crc(\$long_meta);
page_write($long, 0, $long_meta);
$node->start;
foreach my $query (q{SELECT lsm_compact('long_k')}, 'INSERT INTO long SELECT generate_series(1, 5000)')
{
	my (undef, undef, $long_err) = $node->psql('postgres', $query);
	like($long_err, qr/index "long_k" is corrupted at block/, "$query reports a space map that is too long");
}
is(-s $long, $long_size, 'the file has not grown');
$node->safe_psql('postgres', 'DROP TABLE long');

# A meta page that counts no edits: no copy of it would ever be current.
$node->safe_psql('postgres', q{
	CREATE TABLE unedited (k int);
	CREATE INDEX unedited_k ON unedited USING lsm (k);
	INSERT INTO unedited VALUES (7);
});
my $unedited = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('unedited_k')});
$node->stop;
my $unedited_meta = page_read($unedited, 0);
substr($unedited_meta, 24 + 8, 8) = pack 'Q', 0;		# edits
set_crc(\$unedited_meta);
page_write($unedited, 0, $unedited_meta);
$node->start;
foreach my $query ('SELECT count(*) FROM unedited WHERE k = 7', q{SELECT lsm_compact('unedited_k')})
{
	my (undef, undef, $unedited_err) = $node->psql('postgres',
		"SET enable_seqscan = off; SET statement_timeout = '60s'; $query");
	like($unedited_err, qr/index "unedited_k" is corrupted at block 0/, "$query reports a meta page without edits");
}
$node->safe_psql('postgres', 'DROP TABLE unedited');

# Pages are damaged before recovery changes them. Recovery gives them a right checksum, but the damage stays known.
$node->safe_psql('postgres', q{
	ALTER SYSTEM SET full_page_writes = off;
	SELECT pg_reload_conf();
	CREATE TABLE replayed (k text COLLATE "C");
	INSERT INTO replayed SELECT 'key' || i FROM generate_series(1, 900) i;
	CREATE INDEX replayed_k ON replayed USING lsm (k);
	CHECKPOINT;
	DELETE FROM replayed WHERE right(k, 1) = '3';
	VACUUM (INDEX_CLEANUP ON) replayed;
	CREATE TABLE flushed ();		-- its commit flushes the WAL of VACUUM, which need not
});
my $replayed = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('replayed_k')});
$node->stop('immediate');
foreach my $leaf (grep { $_->{kind} eq 'leaf' } page_kinds($replayed))
{
	my $page = page_read($replayed, $leaf->{block});
	my $at = rindex($page, 'key');
	next if $at < 0;
	substr($page, $at + 2, 1) ^= "\x01";
	page_write($replayed, $leaf->{block}, $page);
}
$node->start;
foreach my $query (q{SELECT count(*) FROM replayed WHERE k > ''}, q{SELECT lsm_check('replayed_k')})
{
	my (undef, undef, $replayed_err) = $node->psql('postgres', "SET enable_seqscan = off; $query");
	like($replayed_err, qr/index "replayed_k" is corrupted at block \d+: page was damaged before recovery/, "$query reports damage that recovery found");
}
$node->safe_psql('postgres', q{
	DROP TABLE replayed, flushed;
	ALTER SYSTEM RESET full_page_writes;
	SELECT pg_reload_conf();
});

# A sound meta page whose coding of the keys differs from that of the operator classes.
$node->safe_psql('postgres', q{
	CREATE TABLE coded (k int, s text COLLATE "C");
	INSERT INTO coded SELECT i, 's' || i FROM generate_series(1, 50) i;
	CREATE INDEX coded_k ON coded USING lsm (k, s);
});
my $coded = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('coded_k')});
$node->stop;
my $coded_page = page_read($coded, 0);
my ($nkeys, $encoded, $first) = unpack 'C3', substr($coded_page, 80, 3);
is("$nkeys $encoded", '2 1', 'the meta page has the coding at the expected place');
foreach my $wrong ([ 'columns', 3, 1, $first ], [ 'tuples', 2, 0, $first ], [ 'encoding', 2, 1, $first + 1 ], [ 'no encoding', 2, 1, 0 ])
{
	my ($name, @bytes) = @$wrong;
	my $page = $coded_page;

	substr($page, 80, 3) = pack 'C3', @bytes;
	set_crc(\$page);
	page_write($coded, 0, $page);
	$node->start;
	foreach my $query ('SET enable_seqscan = off; SELECT count(*) FROM coded WHERE k = 5', q{INSERT INTO coded VALUES (1, 'x')},
		q{SELECT lsm_check('coded_k')}, q{SELECT * FROM lsm_runs('coded_k')}, 'VACUUM coded')
	{
		my ($coded_ret, $coded_out, $coded_err) = $node->psql('postgres', $query);

		like($coded_err, qr/ERROR:  keys of index "coded_k" are not coded as its operator classes and collations require\n(.*\n)?HINT:  Please REINDEX it/,
			"wrong $name in the meta page: $query");
	}
	$node->stop;
}
$node->start;
$node->safe_psql('postgres', 'REINDEX INDEX coded_k');
check_clean($node, 'REINDEX repairs the coding');
$node->safe_psql('postgres', 'DROP TABLE coded');

# A page was checked while dirty, then written, then damaged on disk. Its next reader checks it again, even if code
# other than pg_lsm's read it in.
SKIP:
{
	skip 'there is no pg_prewarm and pg_buffercache', 3
	  if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name IN ('pg_prewarm', 'pg_buffercache')}) != 2;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_prewarm;
		CREATE EXTENSION pg_buffercache;
		CREATE TABLE filler WITH (autovacuum_enabled = off) AS SELECT repeat('x', 1000) FROM generate_series(1, 20000);
		CREATE TABLE warm (k int) WITH (autovacuum_enabled = off);
		CREATE INDEX warm_k ON warm USING lsm (k);
		INSERT INTO warm SELECT generate_series(1, 50);
		SELECT lsm_compact('warm_k');
		SET enable_seqscan = off;
		SELECT count(*) FROM warm WHERE k > 0;
		VACUUM warm;
		SELECT count(*) FROM warm WHERE k > 0;
		CHECKPOINT;
	});
	my $evict = sub {
		foreach my $try (1 .. 20)
		{
			$node->safe_psql('postgres', q{SELECT pg_prewarm('filler')});
			return 1 if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('warm_k') AND relblocknumber >= 4}) == 0;
		}
		return 0;
	};
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('warm_k')});
	my $live = live_ids($file, split /\n/, $node->safe_psql('postgres', q{SELECT run_id FROM lsm_runs('warm_k') WHERE state = 'packed'}));
	my ($at) = grep { $_->{kind} eq 'leaf' && $live->{ $_->{owner} } } page_kinds($file);
	my $count = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM warm WHERE k > 0';

	ok($evict->(), 'the pages have been evicted from shared buffers');
	my $page = page_read($file, $at->{block});
	is(unpack('L', substr($page, 8184, 4)), 0, 'the mark of a checked page does not reach the disk');
	my ($lower) = unpack 'S', substr($page, 12, 2);
	substr($page, $lower - 3, 1) ^= "\1";
	page_write($file, $at->{block}, $page);
	$node->safe_psql('postgres', q{SELECT pg_prewarm('warm_k')});
	my ($warm_ret, $warm_out, $warm_err) = $node->psql('postgres', $count);
	like($warm_err, qr/index "warm_k" is corrupted at block $at->{block}: checksum/, 'a damaged page that pg_prewarm has read in is reported');
	$node->safe_psql('postgres', 'DROP TABLE warm, filler; DROP EXTENSION pg_prewarm; DROP EXTENSION pg_buffercache');
}
$node->safe_psql('postgres', 'VACUUM d2');
$node->stop;

# If the library is not preloaded, nothing may be written, because no server could replay it. The error says what to
# do. Other tables remain usable.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
my ($ret, $out, $err) = $node->psql('postgres', 'CREATE INDEX no_preload ON d0 USING lsm (id)');
isnt($ret, 0, 'not preloaded: CREATE INDEX is refused');
like($err, qr/shared_preload_libraries = 'pg_lsm'/, 'not preloaded: CREATE INDEX says what to do');
($ret, $out, $err) = $node->psql('postgres', "INSERT INTO d0 SELECT 1, 'x', i FROM generate_series(1, 100) i");
isnt($ret, 0, 'not preloaded: INSERT is refused');
like($err, qr/shared_preload_libraries = 'pg_lsm'/, 'not preloaded: INSERT says what to do');
foreach my $command ('UPDATE d0 SET id = id + 1 WHERE id < 10', q{COPY d0 (id) FROM PROGRAM 'echo 1'})
{
	($ret, $out, $err) = $node->psql('postgres', $command);
	like($err, qr/shared_preload_libraries = 'pg_lsm'/, "not preloaded: $command is refused");
}
my $lookup = 'SELECT count(*), sum(id) FROM d0 WHERE k = 5';
my $through = 'SET enable_seqscan = off; SET enable_bitmapscan = off';
like($node->safe_psql('postgres', "$through; EXPLAIN $lookup"), qr/using d0_idx/, 'not preloaded: a query uses the index');
like($node->safe_psql('postgres', $lookup), qr/^[1-9]\d*\|/, 'not preloaded: the query has rows to find');
is($node->safe_psql('postgres', "$through; $lookup"), $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $lookup"),
	'not preloaded: the query returns the rows');
($ret, $out, $err) = $node->psql('postgres', 'VACUUM d2; ANALYZE d2');
is($ret, 0, 'not preloaded: VACUUM and ANALYZE work on a table without dead rows');
like($err, qr/WARNING: .*"d2_idx".*\n.*shared_preload_libraries = 'pg_lsm'/, 'not preloaded: VACUUM warns');
$node->safe_psql('postgres', 'DELETE FROM d0 WHERE id % 3 = 0');
# The scans remove no entries, whatever they find.
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM (SELECT * FROM d0 ORDER BY k OFFSET 0) q';
is($node->safe_psql('postgres', $by_index) - $node->safe_psql('postgres', $by_index), 0, 'not preloaded: scans over dead rows work');
($ret, $out, $err) = $node->psql('postgres', 'VACUUM d0');
isnt($ret, 0, 'not preloaded: VACUUM of dead rows is refused');
like($err, qr/shared_preload_libraries = 'pg_lsm'.*VACUUM \(INDEX_CLEANUP off\).*DROP INDEX/, 'not preloaded: VACUUM says what to do');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP off) d0');
foreach my $command ('TRUNCATE d0', 'VACUUM FULL d0', 'ALTER TABLE d0 ALTER id TYPE bigint', 'REINDEX TABLE d0')
{
	($ret, $out, $err) = $node->psql('postgres', $command);
	isnt($ret, 0, "not preloaded: $command is refused");
	like($err, qr/shared_preload_libraries = 'pg_lsm'.*DROP INDEX/, "not preloaded: $command says what to do");
}
$node->safe_psql('postgres', q{BEGIN; DROP INDEX d0_idx; TRUNCATE d0; INSERT INTO d0 VALUES (1); ROLLBACK});
$node->safe_psql('postgres', 'CREATE DATABASE not_preloaded');
($ret, $out, $err) = $node->psql('not_preloaded', 'CREATE EXTENSION pg_lsm');
is($ret, 0, 'not preloaded: CREATE EXTENSION works');
like($err, qr/WARNING: .*\n.*shared_preload_libraries = 'pg_lsm'/, 'not preloaded: CREATE EXTENSION warns');
$node->safe_psql('postgres', 'DROP DATABASE not_preloaded');
$node->safe_psql('postgres', 'CREATE TABLE other (k int PRIMARY KEY); INSERT INTO other VALUES (1)');
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_lsm'");
$node->restart;
check_clean($node, 'preloaded again: indexes are sound');

# Check all indexes at once: a fault in one index does not hide faults in others.
$node->safe_psql('postgres', q{
	CREATE SCHEMA many;
	CREATE TABLE many.a (k int, t text COLLATE "C");
	CREATE INDEX a_k ON many.a USING lsm (k);
	CREATE INDEX a_t ON many.a USING lsm (t);
	CREATE INDEX a_sound ON many.a USING lsm (k, t);
	INSERT INTO many.a SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
	SELECT lsm_compact('many.a_k'), lsm_compact('many.a_t');
	CREATE ROLE owns_nothing LOGIN;
});
is($node->safe_psql('postgres', "SELECT count(*) FROM lsm_check_all('many', true)"), '0', 'lsm_check_all returns nothing if all indexes are sound');
my @files = map { $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('many.$_')") } qw(a_k a_t);
$node->stop;
foreach my $file (@files)
{
	foreach my $leaf (grep { $_->{kind} eq 'leaf' } page_kinds($file))
	{
		my $page = page_read($file, $leaf->{block});

		substr($page, unpack('S', substr($page, 12, 2)) - 1, 1) ^= chr(1);
		page_write($file, $leaf->{block}, $page);
	}
}
$node->start;
is($node->safe_psql('postgres', "SELECT index, problem <> '' FROM lsm_check_all('many') ORDER BY index::text"),
	"many.a_k|t\nmany.a_t|t", 'lsm_check_all reports both damaged indexes');
is($node->safe_psql('postgres', 'SELECT count(*) FROM lsm_check_all()'), '2', 'lsm_check_all reports only the damaged indexes of the database');
is($node->safe_psql('postgres', 'SELECT count(*) FROM lsm_check_all(); SELECT count(*) FROM pg_stat_progress_lsm_check'), "2\n0",
	'lsm_check_all shows no progress after faults');
($ret, $out, $err) = $node->psql('postgres', "SELECT count(*) FROM lsm_check_all('many')", extra_params => [ '-U', 'owns_nothing' ]);
is($out, '0', 'lsm_check_all skips indexes of other owners');
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE many.a');
is($node->safe_psql('postgres', "SET lock_timeout = '100ms'; SELECT DISTINCT problem FROM lsm_check_all('many')"),
	'could not be verified: canceling statement due to lock timeout', 'lsm_check_all does not report a locked index as damaged');
$locker->quit;
($ret, $out, $err) = $node->psql('postgres', "SELECT count(*) FROM lsm_check_all('many')", extra_params => [ '-U', 'owns_nothing' ]);
like($err, qr/permission denied to check index "a_k", skipping it/, 'lsm_check_all warns about skipped indexes');
$node->stop;
done_testing();

# Makes a table of 200 rows with an index, and stops the server. Returns the index's file and its leaves.
sub make_leaves
{
	my ($table) = @_;

	$node->safe_psql('postgres', "
		CREATE TABLE $table (k int) WITH (autovacuum_enabled = off);
		INSERT INTO $table SELECT generate_series(1, 200);
		CREATE INDEX ${table}_k ON $table USING lsm (k)");
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('${table}_k')");
	$node->stop;
	return ($file, grep { $_->{kind} eq 'leaf' } page_kinds($file));
}

# Makes a table with an index whose entries are on an open page, and stops the server. Returns the index's file and the
# page's block.
sub make_open_page
{
	my ($table) = @_;

	$node->safe_psql('postgres', "
		CREATE TABLE $table (k int) WITH (autovacuum_enabled = off);
		CREATE INDEX ${table}_k ON $table USING lsm (k);
		SET pg_lsm.debug_buffer_entries = 0;
		INSERT INTO $table SELECT generate_series(1, 40)");
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('${table}_k')");
	$node->stop;
	my ($page) = grep { $_->{open} } page_kinds($file);
	return ($file, $page->{block});
}

# Damages the file of a case. Sets $case->{at} to a description of the damage and $case->{must} to the required result.
sub damage
{
	my ($case) = @_;
	my ($kind, $what, $file) = @{$case}{qw(kind what file)};

	if ($kind eq 'file')
	{
		my $size = -s $file;
		my %to = (truncate0 => 0, truncate1 => 8192, truncate_half => int($size / 16384) * 8192, truncate_last => $size - 8192);

		$case->{at} = "to $to{$what}";
		# The last page may have no owner.
		$case->{must} = $what eq 'truncate_last' ? 'any' : 'found';
		truncate $file, $to{$what} or die $!;
		return;
	}
	my @pages = grep {
			my $k = $_->{kind} eq 'buffer' ? ($_->{open} ? 'open' : 'sealed') : $_->{kind};
			$k eq $kind && ($k =~ /meta|gate|map/ || $case->{live}{ $_->{owner} })
		} page_kinds($file);
	die "$case->{name}: there is no such page" unless @pages;
	my $at = $pages[ int rand @pages ];
	my $block = $at->{block};
	my $page = page_read($file, $block);
	my ($lower, $upper) = unpack 'SS', substr($page, 12, 4);

	$case->{must} = 'found';
	if ($what eq 'flip')
	{
		# Any byte that matters: the header from pd_lower on, the contents, and the special area except its hint.
		my @places = (12 .. $lower - 1, $upper .. 8191 - 8, 8188 .. 8191);
		# In half of the cases, one of the few bytes of the header and the special area.
		@places = (12 .. 23, 8160 .. 8183, 8188 .. 8191) if $case->{n} % 2;
		my $byte = $places[ int rand @places ];
		my $bit = int rand 8;

		substr($page, $byte, 1) ^= chr(1 << $bit);
		$case->{at} = "block $block, bit $bit of byte $byte";
		# While the page accepts entries, no checksum covers its contents. Other errors may result, for example about
		# rows that do not exist.
		$case->{must} = 'alive' if $kind eq 'open';
	}
	elsif ($what eq 'ignored')
	{
		# The hint, and the hole if there is one.
		substr($page, 8184 + int rand 4, 1) ^= chr(1 << int rand 8);
		substr($page, $lower + int rand($upper - $lower), 1) ^= chr(1 << int rand 8) if $upper > $lower;
		$case->{at} = "block $block, nothing that matters";
		$case->{must} = 'right';
	}
	elsif ($what eq 'zero')
	{
		$page = "\0" x 8192;
		$case->{at} = "block $block";
	}
	elsif ($what eq 'garbage')
	{
		# Leave the header up to the page size intact, so that lsm gets to see the page at all.
		substr($page, 24) = join '', map { chr int rand 256 } 1 .. 8168;
		$case->{at} = "block $block";
		$case->{must} = 'alive' if $kind eq 'open';
	}
	elsif ($what eq 'swap')
	{
		my ($from) = grep { $_ != $block } map { $_->{block} } (@pages, page_kinds($file));

		$page = page_read($file, $from);
		$case->{at} = "block $block, replaced by block $from";
	}
	elsif ($what eq 'stale')
	{
		substr($page, 8160, 8) = pack 'Q', $at->{owner} - 1;
		set_crc(\$page);
		$case->{at} = "block $block, of owner " . ($at->{owner} - 1) . " in place of $at->{owner}";
	}
	elsif ($what eq 'magic')
	{
		substr($page, 24, 4) = 'NOPE';
		set_crc(\$page);
		$case->{at} = 'another magic';
	}
	elsif ($what eq 'future_version')
	{
		substr($page, 28, 4) = pack 'L', 4711;
		set_crc(\$page);
		$case->{at} = 'version 4711';
		$case->{says} = qr/version/;
	}
	elsif ($what =~ /^version_(\d)$/)
	{
		# The format of leaves changed since this version, so every leaf would be misread.
		substr($page, 28, 4) = pack 'L', $1;
		set_crc(\$page);
		$case->{at} = "version $1";
		$case->{says} = qr/has format version $1, but this pg_lsm works with version 7(.*\n)*HINT:  Install the pg_lsm that wrote the index, or REINDEX it/;
	}
	page_write($file, $block, $page);
	return;
}

# Runs queries on the table of a case.
sub judge
{
	my ($case) = @_;
	my ($t, $index) = @{$case}{qw(table index)};
	my $row = "md5(string_agg(ROW(k, s, id)::text, ' '";
	my @queries = (
		[ order => "SELECT $row) ) FROM (SELECT k, s, id FROM $t ORDER BY k, s DESC) x" ],
		[ backward => "SELECT $row ORDER BY k, s DESC, id)) FROM (SELECT k, s, id FROM $t ORDER BY k DESC, s) x" ],
		[ lookups => "SELECT $row ORDER BY n, s DESC, tid)) FROM generate_series(0, 59) n, LATERAL (SELECT k, s, id, ctid AS tid FROM $t WHERE k = n) x" ],
		[ bitmap => "SET enable_indexscan = off; SET enable_bitmapscan = on; SELECT $row ORDER BY k, s DESC, tid)) FROM (SELECT k, s, id, ctid AS tid FROM $t WHERE k >= 0) x; SET enable_indexscan = on; SET enable_bitmapscan = off" ],
		[ check => "SELECT coalesce(nullif(lsm_check('$index', true)::text, ''), 'clean')" ],
		[ runs => "SELECT coalesce(min('clean'), 'clean') FROM lsm_runs('$index')" ],
		[ insert => "BEGIN; INSERT INTO $t SELECT i, 'new', i FROM generate_series(1, 40) i; ROLLBACK; SELECT 'clean'" ],
		[ vacuum => "DELETE FROM $t WHERE id % 7 = 0" ],
		[ vacuum => "VACUUM $t" ],
		[ vacuum => "SELECT 'clean'" ]);
	my ($out, $err) = ('', '');
	my $script = "\\set VERBOSITY verbose\nSET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = on; SET enable_hashjoin = off; SET enable_mergejoin = off;\n"
	  . join '', map { "\\echo >$_->[0]\n\\warn >$_->[0]\n$_->[1];\n" } @queries;
	my @bad;
	my $done = eval {
		IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ],
			'<', \$script, '>', \$out, '2>', \$err, IPC::Run::timeout(1.5 * $limit));
		1;
	};
	if (!$done)
	{
		# Not even statement_timeout ended the query.
		push @bad, 'hangs';
		$node->stop('immediate', fail_ok => 1);
		$node->start;
	}

	my (%rows, %errors);
	foreach (split /^>/m, $out) { my ($q, $r) = split /\n/, $_, 2; $rows{$q} .= $r // '' if defined $q; }
	foreach (split /^>/m, $err) { my ($q, $r) = split /\n/, $_, 2; $errors{$q} .= $r // '' if defined $q; }
	my $found = '';
	my %want = (order => $case->{rows}, backward => $case->{rows_by_id}, lookups => $case->{rows}, bitmap => $case->{rows}, check => 'clean', runs => 'clean', insert => 'clean', vacuum => 'clean');
	foreach my $q (qw(order backward lookups bitmap check runs insert vacuum))
	{
		my $e = $errors{$q} // '';
		my $r = $rows{$q} // '';

		chomp $r;
		if ($e =~ /(ERROR|FATAL|PANIC|server closed|connection)/)
		{
			$found .= "$q ";
			# Our error, or the server's if it could not even read the page.
			my $ours = $e =~ /ERROR:  XX00[12]: index "$index" .*block \d+/;
			my $core = $e =~ /ERROR:  XX00[12]: (invalid page in block \d+|could not read blocks? \d+)/;
			my $old = $e =~ /ERROR:  \w+: .*"$index".*version/;

			push @bad, "$q: $e" unless $ours || $core || $old || $case->{must} eq 'alive' && $e !~ /FATAL|PANIC|server closed|connection|timeout/;
			push @bad, "$q does not say $case->{says}: $e" if $case->{says} && $e !~ $case->{says};
		}
		elsif (defined $want{$q} && $r ne $want{$q} && $case->{must} ne 'alive')
		{
			push @bad, "$q: wrong rows: $r";
		}
	}
	push @bad, 'was not found by lsm_check' if $case->{must} eq 'found' && $found !~ /check/;
	push @bad, "has errors: $found" if $case->{must} eq 'right' && $found ne '';
	is(join("\n", @bad), '', "$case->{name}: $case->{at}");
	return;
}

# Returns the checksum as pages store it: CRC-32C of the bytes from the field pd_lower to the offset pd_lower, and from
# pd_upper to the end, without the checksum itself and the hint.
sub set_crc
{
	my ($page) = @_;
	my ($lower, $upper) = unpack 'SS', substr($$page, 12, 4);
	my $bytes = substr($$page, 12, $lower - 12) . substr($$page, $upper, 8160 + 20 - $upper) . substr($$page, 8188);
	my $crc = 0xFFFFFFFF;

	foreach my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = ($crc >> 1) ^ ($crc & 1 ? 0x82F63B78 : 0) for 1 .. 8;
	}
	substr($$page, 8160 + 20, 4) = pack 'L', $crc ^ 0xFFFFFFFF;
	substr($$page, 8160 + 24, 4) = pack 'L', 0;
	return;
}
