# The commands in README.md and docs/: every block of code has a language, and the server accepts what a reader would type.
#
# - sql: psql runs the block in the page's own database. documents/PAGE.sql, if any, creates the page's tables.
# - ini: the server reads the settings.
# - sh: bash runs the block, in a folder with the tools. Blocks that install or start something are only parsed.
# - text: output, syntax and pictures. Not run.
#
# Some pages need several servers. This test checks only the languages of their blocks. Other suites test those setups.
use strict;
use warnings;

use Cwd qw(realpath);
use File::Basename qw(basename);
use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $tree = realpath("$FindBin::RealBin/../..");
my $work = PostgreSQL::Test::Utils::tempdir;
my $node = start_new_node('documents', conf => $full);
my %needs_servers = map { $_ => 1 } qw(citus scale-out standby-reads);

# Returns the blocks of a page: language, code and line. An indented block counts as a block without a language.
sub blocks
{
	my ($file) = @_;
	my @lines = split /\n/, slurp_file($file);
	my (@blocks, $open);

	for my $i (0 .. $#lines)
	{
		if ($lines[$i] =~ /^( *)```(\w*)$/)
		{
			$open = $open ? undef : { language => $2, indent => length $1, line => $i + 1, code => '' };
			push @blocks, $open if $open;
		}
		elsif ($open)
		{
			$open->{code} .= substr($lines[$i], length $lines[$i] < $open->{indent} ? 0 : $open->{indent}) . "\n";
		}
		elsif ($lines[$i] =~ /^ {4}/ && $i > 0 && $lines[ $i - 1 ] eq '')
		{
			push @blocks, { language => '', line => $i + 1, code => $lines[$i] };
		}
	}
	return @blocks;
}

# Each of these functions returns what went wrong, or nothing.
my %run = (
	sql => sub {
		my ($database, $code) = @_;
		my ($status, $out, $err) = $node->psql($database, $code, on_error_stop => 1);

		return $status == 0 ? '' : $err;
	},
	ini => sub {
		my ($database, $code) = @_;
		my $conf = $node->data_dir . '/postgresql.auto.conf';
		my $before = slurp_file($conf);

		append_to_file($conf, $code);
		my $problems = $node->safe_psql('postgres', q{SELECT string_agg(name || ': ' || error, '; ') FROM pg_file_settings
			WHERE error IS NOT NULL AND error <> 'setting could not be applied'});
		unlink $conf;
		append_to_file($conf, $before);
		return $problems;
	},
	sh => sub {
		my ($database, $code) = @_;
		my $only_parsed = $code =~ /\b(?:sudo|apt-get|make|systemctl|git|docker|tools\/\w+\.sh|bench\/\w+\.sh)\b/;
		my $script = "$work/script.sh";

		unlink $script;
		append_to_file($script, $code);
		local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => $database, PGOPTIONS => '');
		my $output = $only_parsed ? `bash -n $script 2>&1` : `cd $work && bash -e -o pipefail $script 2>&1`;
		return $? == 0 ? '' : $output;
	},
	text => sub { return ''; },
);

$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$work/shop.dump", 'shop' ], 'a dump for the commands that read one');
append_to_file("$work/$_", '') foreach qw(dump.sql old_dump.sql);
symlink "$tree/tools", "$work/tools" or die "could not link the tools: $!";
foreach my $file ("$tree/README.md", glob("$tree/docs/*.md"))
{
	my $page = basename($file, '.md');
	my $database = lc "page_$page" =~ tr/-/_/r;
	my $fixture = "$FindBin::RealBin/documents/$page.sql";
	my @blocks = blocks($file);
	my @problems;

	next if !@blocks;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, slurp_file($fixture)) if -e $fixture;
	foreach my $block (@blocks)
	{
		my $problem = !$run{ $block->{language} } ? "no language or an unknown one: $block->{language}" :
		  $needs_servers{$page} ? '' : $run{ $block->{language} }->($database, $block->{code});

		push @problems, "line $block->{line}: $problem" if $problem ne '';
	}
	is(join("\n", @problems), '', "$page: " . @blocks . ' blocks of code');
}

$node->stop;
done_testing();
