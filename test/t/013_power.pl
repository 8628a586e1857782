# A simulated loss of power. The server runs with fsync and dies. Then some of the sectors that it wrote but did not
# flush get their earlier contents back, so pages are lost or torn. WAL and full-page images must make up for the loss.
# PG_LSM_SEED decides which sectors. See test/power/power.c.
use strict;
use warnings;

use File::Find;
use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $seed = $ENV{PG_LSM_SEED} // 1;
my $node = new_node('power', conf => "
fsync = on
full_page_writes = on
checkpoint_timeout = 1h
max_wal_size = 256MB
shared_buffers = 1MB		# pages are written all the time
pg_lsm.max_workers = 2
pg_lsm.idle_delay = '50ms'
");
my $library = $node->basedir . '/power.so';
my $log = $node->basedir . '/power.log';
my $sector = 4096;

system_or_bail('cc', '-shared', '-fPIC', '-O1', '-w', '-o', $library, "$FindBin::RealBin/../power/power.c", '-ldl');

sub start_noting
{
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{LSM_POWER_LOG} = $log;

	unlink $log;
	$node->start;
	return;
}

# Restores some sectors that were not flushed. Returns their number by kind of file.
sub lose_power
{
	my (%unflushed, %path_of, %lost);

	open my $fh, '<:raw', $log or die "$log: $!";
	while (read($fh, my $header, 24) == 24)
	{
		my ($inode, $offset, $length, $before) = unpack 'Q Q L L', $header;
		my $old = '';

		die 'the log ends early' if $before > 0 && read($fh, $old, $before) != $before;
		if ($length == 0)
		{
			delete $unflushed{$inode};
		}
		else
		{
			push @{ $unflushed{$inode} }, [ $offset, $length, $old ];
		}
	}
	close $fh;
	find(sub { my @st = lstat; $path_of{ $st[1] } = $File::Find::name if -f _ }, $node->data_dir);
	foreach my $inode (sort { $path_of{$a} cmp $path_of{$b} } grep { $path_of{$_} } keys %unflushed)
	{
		my $kind = $path_of{$inode} =~ m{/pg_wal/} ? 'wal' : $path_of{$inode} =~ m{/base/} ? 'base' : 'other';
		my $size = -s $path_of{$inode};
		my %goes;

		open my $file, '+<:raw', $path_of{$inode} or die "$path_of{$inode}: $!";
		# Go from the last write to the first. Flushed data remains.
		foreach my $write (reverse @{ $unflushed{$inode} })
		{
			my ($offset, $length, $old) = @$write;

			$old .= "\0" x ($length - length $old);
			for (my $at = $offset; $at < $offset + $length;)
			{
				my $end = (int($at / $sector) + 1) * $sector;

				$end = $offset + $length if $end > $offset + $length;
				$goes{ int($at / $sector) } //= rand() < 0.5 ? 1 : 0;
				if ($goes{ int($at / $sector) } && $end <= $size)
				{
					seek $file, $at, 0;
					print $file substr($old, $at - $offset, $end - $at);
				}
				$at = $end;
			}
		}
		close $file or die $!;
		foreach my $page (grep { $_ % 2 == 0 } keys %goes)
		{
			$lost{"$kind torn"}++ if defined $goes{ $page + 1 } && $goes{$page} != $goes{ $page + 1 };
		}
		$lost{$kind} += grep { $_ } values %goes;
	}
	return %lost;
}

srand($seed);
note "seed $seed";
start_noting();
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_lsm;
CREATE TABLE t (k int, s text COLLATE "C", who int) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_s ON t USING lsm (s DESC, k) INCLUDE (who);
CREATE TABLE committed (who int PRIMARY KEY, rows bigint NOT NULL);
INSERT INTO committed SELECT i, 0 FROM generate_series(0, 3) i;
CREATE TABLE commits (who int, script int, n bigint, PRIMARY KEY (who, script));
INSERT INTO commits SELECT who, script, 0 FROM generate_series(0, 3) who, generate_series(0, 1) script;
});
my %total;
foreach my $round (1 .. 3)
{
	my $load = load_start($node, name => "power$round", clients => 4, seconds => 170, log => 1, scripts => [
			[ 8, "\\set k random(0, 1000)\n\\set n random(1, 200)\nBEGIN;\nINSERT INTO t SELECT (:k + i * 7919) % 1000, 's' || (:k * i) % 100, :client_id FROM generate_series(1, :n) i;\n" .
				"UPDATE committed SET rows = rows + :n WHERE who = :client_id;\nUPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 0;\nCOMMIT;\n" ],
			[ 2, "\\set k random(0, 1000)\nBEGIN;\nWITH gone AS (DELETE FROM t WHERE k BETWEEN :k AND :k + 20 AND who = :client_id RETURNING 1)\n" .
				"UPDATE committed SET rows = rows - (SELECT count(*) FROM gone) WHERE who = :client_id;\nUPDATE commits SET n = n + 1 WHERE who = :client_id AND script = 1;\nCOMMIT;\n" ],
			[ 1, "VACUUM (TRUNCATE off) t;\n" ] ]);

	$node->poll_query_until('postgres', 'SELECT sum(n) > 10 FROM commits') or die 'the load does not begin';
	# Data flushed by then remains.
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $flushed = $node->safe_psql('postgres', 'SELECT sum(n) FROM commits');
	$node->poll_query_until('postgres', "SELECT sum(n) > $flushed + 30 FROM commits") or die 'the load does not go on';
	kill_postmaster($node);
	load_stop($load);
	my %lost = lose_power();
	$total{$_} += $lost{$_} foreach keys %lost;
	note "round $round: sectors lost: " . join ', ', map { "$_ $lost{$_}" } sort keys %lost;
	start_noting();
	check_clean($node, "round $round: indexes are sound after a loss of power");
	is($node->safe_psql('postgres', q{SELECT string_agg(format('%s: %s rows, should be %s', who, coalesce(have, 0), rows), ', ')
			FROM committed LEFT JOIN (SELECT who, count(*) AS have FROM t GROUP BY who) x USING (who) WHERE coalesce(have, 0) <> rows}),
		'', "round $round: each table has exactly the committed rows");
	is(lost_commits($node, $load), '', "round $round: no acknowledged commit is lost");
}
cmp_ok($total{$_} // 0, '>', 0, "sectors of this kind were lost: $_") foreach ('base', 'base torn');
unlike(log_since($node, 0), qr/PANIC|TRAP|is corrupted/, 'the log has no other errors');
$node->stop;
done_testing();
