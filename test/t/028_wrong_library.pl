# A library built for another major version: the server rejects it and keeps running.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('node');
$node->safe_psql('postgres', 'CREATE TABLE t (k int); CREATE INDEX t_k ON t USING lsm (k); INSERT INTO t SELECT generate_series(1, 1000)');
my $library = $node->safe_psql('postgres', q{SELECT setting || '/pg_lsm.so' FROM pg_config WHERE name = 'PKGLIBDIR'});
my $major = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000) * 100;
my $bytes = slurp_file($library, 0);

# The magic block has the major version, and the limits that modules must agree on.
my $limits = pack 'i3', 100, 32, 64;
my $magic = quotemeta(pack('i', $major) . $limits);
my $patched = pack('i', $major + 100) . $limits;
is($bytes =~ s/$magic/$patched/g, 1, 'the library has one magic block');
my $other = PostgreSQL::Test::Utils::tempdir_short() . '/pg_lsm.so';
open my $fh, '>:raw', $other or die $!;
print $fh $bytes;
close $fh;
chmod 0755, $other;
my ($ret, $out, $err) = $node->psql('postgres', "LOAD '$other'");
like($err, qr/incompatible library .*version mismatch/s, 'LOAD refuses a library of another major version');

# The same at server start.
$node->stop;
my $settings = $node->data_dir . '/postgresql.conf';
append_to_file($settings, "shared_preload_libraries = '$other'\n");
is($node->start(fail_ok => 1), 0, 'the server does not start with the wrong library');
like(slurp_file($node->logfile), qr/incompatible library/, 'the log says that the library is incompatible');
append_to_file($settings, "shared_preload_libraries = 'pg_lsm'\n");
$node->start;
check_clean($node, 'indexes are sound with the right library again');
$node->stop;
done_testing();
