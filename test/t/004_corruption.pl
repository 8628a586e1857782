# Damaged files: each page kind with flipped bits, zeroed, swapped, the file cut
# short, a format version from the future, the library not preloaded.  Each gives
# an error that names the index (and block), or the right rows; never a crash,
# never wrong rows.  Without data checksums: the pages' own must do.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('node', conf => "restart_after_crash = on\nfsync = off\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_n ON t USING lsm (n, s);
INSERT INTO t SELECT i * 7919 % 1000, 's' || i % 50, i % 300 FROM generate_series(1, 1500) i;
CHECKPOINT;
});

my $query_k = 'SELECT count(*), md5(string_agg(k::text, \' \')) FROM (SELECT k FROM t WHERE k BETWEEN 100 AND 900 ORDER BY k) q';
my $query_n = 'SELECT count(*), md5(string_agg(n::text, \' \')) FROM (SELECT n FROM t WHERE n >= 20 ORDER BY n) q';
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;';
my %query = (t_k => $query_k, t_n => $query_n);
my %right;
$right{$_} = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $query{$_}")
  foreach keys %query;

my %file = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } keys %query;

# Pages of replaced runs lie about in the file; damage there harms nobody.
my %live;
foreach my $index (keys %query)
{
	$live{$index}{$_} = 1
	  foreach 0, split /\n/, $node->safe_psql('postgres', "SELECT run_id FROM lsm_runs('$index') WHERE state <> 'building'");
}
$node->stop;
my %sound = map { $_ => slurp_file($file{$_}) } keys %file;

sub restore
{
	my ($index) = @_;
	open my $fh, '>:raw', $file{$index} or die $!;
	print $fh $sound{$index};
	close $fh;
	return;
}

# With the file as it is now: what do the query and lsm_check say?
sub ask
{
	my ($index) = @_;
	$node->start;
	my ($ret, $out, $err) = $node->psql('postgres', "$by_index $query{$index}");
	my ($check_ret, undef, $check_err) = $node->psql('postgres', "SELECT lsm_check('$index', true)");
	$node->stop;
	return { ret => $ret, out => $out, err => $err, check_ret => $check_ret, check_err => $check_err };
}

# Rows right, or an error that names index and block; and lsm_check objects.
sub verdict
{
	my ($name, $index, $answer) = @_;
	my $fine = $answer->{ret} == 0 ? $answer->{out} eq $right{$index}
	  : $answer->{err} =~ /index "$index" is corrupted at block \d+: .*/;
	ok($fine, "$name: right rows or a clear error") or diag("$answer->{ret} $answer->{out} $answer->{err}");
	like($answer->{check_err}, qr/index "$index".*block \d+|could not read block/s, "$name: lsm_check objects")
	  if $answer->{check_ret} != -1;
	return;
}

srand(17);
foreach my $index (sort keys %query)
{
	my %seen;
	foreach my $page (grep { $live{$index}{ $_->{run} } } page_kinds($file{$index}))
	{
		my $kind = $page->{kind} . ($page->{open} ? ' (open)' : '');
		next if $kind eq 'empty' || $seen{$kind}++ >= ($page->{kind} eq 'leaf' ? 2 : 1);
		my $sound = page_read($file{$index}, $page->{block});

		# A bit of what is used: the header's pd_lower tells how much that is.
		# The open page changes with each insert and has no checksum of ours.
		unless ($page->{open})
		{
			my $damaged = $sound;
			my $at = 24 + int(rand(unpack('S', substr($sound, 12, 2)) - 24));
			$at = 24 if $page->{kind} eq 'gate';
			$at = 8192 - 20 if $page->{kind} eq 'gate';
			substr($damaged, $at, 1) = chr(ord(substr($damaged, $at, 1)) ^ 1 << int(rand(8)));
			page_write($file{$index}, $page->{block}, $damaged);
			my $answer = ask($index);
			verdict("$index: bit flipped in $kind page", $index, $answer);
		}
		page_write($file{$index}, $page->{block}, "\0" x 8192);
		my $answer = ask($index);
		verdict("$index: $kind page zeroed", $index, $answer);
		restore($index);
	}
}

# Two pages change places.
my @leaves = grep { $_->{kind} eq 'leaf' && $live{t_k}{ $_->{run} } } page_kinds($file{t_k});
my ($a, $b) = map { page_read($file{t_k}, $_->{block}) } @leaves[ 0, 1 ];
page_write($file{t_k}, $leaves[0]->{block}, $b);
page_write($file{t_k}, $leaves[1]->{block}, $a);
verdict('pages swapped', 't_k', ask('t_k'));
restore('t_k');

# The file ends early.
truncate $file{t_k}, 8192 * 10;
my $answer = ask('t_k');
isnt($answer->{ret}, 0, 'a short file is noticed');
like($answer->{err}, qr/index "t_k" is corrupted at block \d+: the file ends before this block/, 'and told');
restore('t_k');

# A format from the future: the version is the second word of the meta page.
my $meta = page_read($file{t_k}, 0);
page_write($file{t_k}, 0, substr($meta, 0, 28) . pack('L', 99) . substr($meta, 32));
$answer = ask('t_k');
like($answer->{err}, qr/index "t_k" has format version 99, but this pg_lsm works with version \d+/, 'a future version is told');
like($answer->{check_err}, qr/format version 99/, 'by lsm_check, too');
restore('t_k');

# REINDEX mends it.
page_write($file{t_k}, 0, "\0" x 8192);
$node->start;
$node->safe_psql('postgres', 'REINDEX INDEX t_k');
is($node->safe_psql('postgres', "$by_index $query_k"), $right{t_k}, 'REINDEX mends a lost meta page');
$node->safe_psql('postgres', q{SELECT lsm_check('t_k', true), lsm_check('t_n', true)});

# Not preloaded: reads work, writes and builds tell what to do.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->restart;
is($node->safe_psql('postgres', "$by_index $query_n"), $right{t_n}, 'reads work without preloading');
foreach my $statement ('INSERT INTO t VALUES (1)', 'CREATE INDEX ON t USING lsm (s)', 'VACUUM t')
{
	my ($ret, $out, $err) = $node->psql('postgres', $statement);
	like($err, qr/pg_lsm must be loaded via shared_preload_libraries.*HINT:.*shared_preload_libraries = 'pg_lsm'/s,
		"without preloading: $statement");
}
$node->stop;
done_testing();
