# Workers merge what readers have paid for. An index that is read ends with few runs although it is not idle. An index
# that nobody reads keeps its runs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

# No other merges: too few runs for a level, and no index ever counts as idle.
my $node = start_new_node('readers', conf => "
pg_lsm.max_workers = 2
pg_lsm.idle_delay = '-1'
pg_lsm.debug_merge_fanout = 32
pg_lsm.debug_buffer_entries = 0
max_worker_processes = 12
");

# Each batch of 50 rows becomes a run.
sub batches
{
	my ($table, $n) = @_;

	$node->safe_psql('postgres', join ';', ("INSERT INTO $table SELECT (random() * 1000)::int FROM generate_series(1, 50)") x $n);
	return;
}

sub make
{
	my ($table, $n) = @_;

	$node->safe_psql('postgres', "CREATE TABLE $table (k int); CREATE INDEX ${table}_k ON $table USING lsm (k)");
	batches($table, $n);
	return;
}

sub look_up
{
	my ($on, $table, $n) = @_;

	$on->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off;
		DO \$\$ BEGIN FOR i IN 1 .. $n LOOP PERFORM FROM $table WHERE k = i % 1000; END LOOP; END \$\$");
	return;
}

# The ids of the runs that are not open (in scalar context, their number).
sub runs
{
	my ($table, $on) = @_;

	return split /\n/, ($on // $node)->safe_psql('postgres', "SELECT run_id FROM lsm_runs('${table}_k') WHERE state <> 'open' ORDER BY 1");
}

# Reads until there are few runs. Returns whether this happened.
sub read_to_few
{
	my ($table, $on) = @_;

	foreach (1 .. 300)
	{
		look_up($on // $node, $table, 2000);
		return 1 if runs($table, $on) <= 3;
		sleep 0.1;
	}
	return 0;
}

# 1. Reads only, and reads while rows arrive.
make('often', 30);
make('never', 30);
my @unread = runs('never');
cmp_ok(scalar @unread, '>=', 30, 'the index has many runs');
ok(read_to_few('often'), 'reads leave few runs');
my $few = 1;
foreach (1 .. 15)
{
	batches($_, 1) foreach qw(often never);
	$few &&= read_to_few('often');
}
ok($few, 'reads leave few runs while rows arrive');
my %is_there = map { $_ => 1 } runs('never');
is(scalar(grep { !$is_there{$_} } @unread), 0, 'an index without reads keeps its runs');
cmp_ok(scalar keys %is_there, '>=', 45, 'an index without reads keeps new runs, too');
ok(read_to_few('never'), 'the index has few runs once it is read');
check_clean($node, 'indexes are sound after merges for readers');

# 2. Readers and writers at the same time.
my $load = load_start($node, name => 'mixed', clients => 4, transactions => 200, scripts => [
		[ 2, 'INSERT INTO often SELECT (random() * 1000)::int FROM generate_series(1, 50);' ],
		[ 6, "SET enable_seqscan = off;\nDO \$\$ BEGIN FOR i IN 1 .. 200 LOOP PERFORM FROM often WHERE k = i; END LOOP; END \$\$;" ],
		[ 1, "\\set k random(0, 1000)\nDELETE FROM often WHERE k = :k;" ] ]);
$node->safe_psql('postgres', 'VACUUM often') foreach 1 .. 10;
unlike(load_stop($load), qr/ERROR|aborted/, 'readers and writers have no errors');
ok(read_to_few('often'), 'readers and writers leave few runs');
check_clean($node, 'indexes are sound after readers and writers');

# 3. Without workers nobody merges for readers. Once workers are allowed, further reads start a merge.
change_settings($node, 'pg_lsm.max_workers' => 0);
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_lsm worker'"), 'no worker is running');
batches('never', 30);
my $before = join ' ', runs('never');
look_up($node, 'never', 20000);
is(join(' ', runs('never')), $before, 'without workers, all runs stay');
change_settings($node, 'pg_lsm.max_workers' => 2);
ok(read_to_few('never'), 'reads leave few runs once workers are allowed');

# 4. A table that is locked but readable.
batches('never', 30);
$before = join ' ', runs('never');
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN');
$locker->query_safe('LOCK TABLE never IN EXCLUSIVE MODE');
look_up($node, 'never', 5000) foreach 1 .. 5;
is(join(' ', runs('never')), $before, 'no worker merges a locked table');
$locker->query_safe('COMMIT');
$locker->quit;
ok(read_to_few('never'), 'reads leave few runs once the table is unlocked');

# 5. A new file: its run ids start over, but reads of the old file do not count for it.
look_up($node, 'often', 20000);
$node->safe_psql('postgres', 'TRUNCATE often');
$node->safe_psql('postgres', q{SET pg_lsm.debug_batch_entries = 150;
	INSERT INTO often SELECT (random() * 1000)::int FROM generate_series(1, 750)});
$before = join ' ', runs('often');
cmp_ok(scalar(split / /, $before), '>=', 5, 'the index has some runs after TRUNCATE');
# Enough reads for a worker to check. They do not count for runs that the worker then sees for the first time.
look_up($node, 'often', 1500);
# Once the worker has merged the index that is read later, it has checked this one, too.
batches('never', 30);
ok(read_to_few('never'), 'a worker has visited the index');
is(join(' ', runs('often')), $before, 'reads of the old file do not start a merge');
ok(read_to_few('often'), 'reads of the new file start a merge');

# 6. An INSERT whose rows all exist, and are all-visible since VACUUM, only reads. Such reads count too.
change_settings($node, 'pg_lsm.max_workers' => 0);
$node->safe_psql('postgres', 'CREATE TABLE ledger (k int); CREATE UNIQUE INDEX ledger_k ON ledger USING lsm (k)');
$node->safe_psql('postgres', join ';', map { "INSERT INTO ledger SELECT i * 40 + $_ FROM generate_series(1, 50) i" } 1 .. 40);
$node->safe_psql('postgres', 'VACUUM ledger');
cmp_ok(scalar(runs('ledger')), '>=', 30, 'the ledger has many runs');
change_settings($node, 'pg_lsm.max_workers' => 2);
$few = 0;
foreach (1 .. 300)
{
	$node->safe_psql('postgres', 'INSERT INTO ledger SELECT k FROM ledger ON CONFLICT DO NOTHING');
	last if $few = runs('ledger') <= 3;
	sleep 0.1;
}
ok($few, 'inserts of rows that exist leave few runs');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT k) FROM ledger'), '2000|2000', 'no row that exists was inserted again');

# 7. A standby only reads. After its promotion, and after a restart, reads alone start a merge.
batches('never', 30);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$before = join ' ', runs('never', $standby);
look_up($standby, 'never', 20000);
is(join(' ', runs('never', $standby)), $before, 'a standby merges nothing');
$standby->promote;
ok(read_to_few('never', $standby), 'reads start merges on the promoted standby');
check_clean($standby, 'indexes are sound after promotion');
$standby->stop;
$node->restart;
ok(read_to_few('never'), 'after a restart, reads alone start merges');
check_clean($node, 'indexes are sound after all merges');
unlike(slurp_file($_->logfile), qr/ERROR|PANIC|TRAP|terminated by signal/, 'the log has no errors') foreach $node, $standby;

# 8. Beyond shared buffers, most lookups in a large run must read a block. They would do so even without a tiny run
# beside it, so they do not pay for merging the two.
$node->stop;
$node->append_conf('postgresql.conf', 'shared_buffers = 128kB');
$node->start;
$node->safe_psql('postgres', q{CREATE TABLE large (k int);
	INSERT INTO large SELECT i * 7919::bigint % 300007 FROM generate_series(1, 300000) i;
	CREATE INDEX large_k ON large USING lsm (k)});
$node->safe_psql('postgres', q{SELECT lsm_compact('large_k')});
my $largest = q{SELECT run_id FROM lsm_runs('large_k') ORDER BY blocks DESC LIMIT 1};
$before = $node->safe_psql('postgres', $largest);
$node->safe_psql('postgres', 'INSERT INTO large SELECT (random() * 1000)::int FROM generate_series(1, 2000)');
cmp_ok(scalar(runs('large')), '>=', 2, 'there are runs beside the large one');
$node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_bitmapscan = off;
	DO $$ BEGIN FOR i IN 1 .. 16000 LOOP PERFORM FROM large WHERE k = i * 31 % 300007; END LOOP; END $$});
batches('never', 30);
ok(read_to_few('never'), 'a worker has visited the index');
is($node->safe_psql('postgres', $largest), $before, 'blocks that a single run needs, too, pay for no merge');
$node->stop;
done_testing();
