/*
 * main.c
 *		The load generator of the benchmarks: its command line.
 *
 *	client load [option]... CONNINFO TABLE			fills a table by COPY
 *	client run  [option]... CONNINFO TABLE CLASS:THREADS...
 *												operations; the heads of run.c, sales.c and events.c list the classes
 *
 *	-k KIND		kind of the rows (see rows.c; default int4_random)
 *	-r N		load: rows to load; run: rows that are in the table
 *	-s N		seed (default 1)
 *	-b N		rows in a transaction (default 1000)
 *	-x			COPY in binary format instead of text (lineitem: text only)
 *	-t S		load: stop after S seconds (default: no limit); run: measure for S seconds (default 5)
 *	-c N		load: connections (default 1)
 *	-f N		number of the first row (default 0)
 *	-e N		load: a sample every N rows (default 100000)
 *	-a N		load: at most N rows a second; run: exactly N rows a second, in each of the classes copy and trim
 *				(default: as fast as the server takes them)
 *	-n			load: only make the rows, without a server, to measure the speed of this program
 *	-w S		run: warm up for S seconds before measuring (default 0)
 *	-i S		run: a sample every S seconds (default: none)
 *	-o N		run: at most N operations per thread, after the warm-up
 *	-l N		run: rows of a range (default 100)
 *	-p SHARE	run: share of all keys that a range covers, instead of -l
 *	-q SQL		run: statement for lookup or range; %s is the table
 *
 * It prints lines of comma-separated values:
 *
 *	sample,load,rows,seconds,worst_ms,gap_ms	since the last sample: the longest transaction, and the longest time in
 *												which no connection committed
 *	sample,CLASS,second,ops,p50_us,p99_us,max_us	since the last sample
 *	result,WHAT,NAME,VALUE						at the end; gap_us is as above, for a class of operations
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

static void
usage(void)
{
	die("usage: client load|run [option]... CONNINFO TABLE [CLASS:THREADS]...\n"
		"The head of main.c lists the options.");
}

static void
parse_option(Options *o, int option, char *value)
{
	switch (option)
	{
		case 'k':
			o->source.kind = find_kind(value);
			if (o->source.kind == NULL)
				die("unknown kind of rows \"%s\"", value);
			break;
		case 'r':
			o->rows = strtoull(value, NULL, 10);
			break;
		case 's':
			o->source.seed = strtoull(value, NULL, 10);
			break;
		case 'b':
			o->batch = atol(value);
			break;
		case 'x':
			o->source.binary = true;
			break;
		case 't':
			o->limit_s = atof(value);
			break;
		case 'c':
			o->clients = atoi(value);
			break;
		case 'f':
			o->first_row = strtoull(value, NULL, 10);
			break;
		case 'e':
			o->sample_every = strtoull(value, NULL, 10);
			break;
		case 'a':
			o->rate = atof(value);
			break;
		case 'n':
			o->dry = true;
			break;
		case 'w':
			o->warmup_s = atof(value);
			break;
		case 'i':
			o->interval_s = atof(value);
			break;
		case 'o':
			o->max_ops = strtoull(value, NULL, 10);
			break;
		case 'l':
			o->length = strtoull(value, NULL, 10);
			break;
		case 'p':
			o->selectivity = atof(value);
			break;
		case 'q':
			o->sql = value;
			break;
		default:
			usage();
	}
}

int
main(int argc, char **argv)
{
	Options		o = {.batch = 1000,.clients = 1,.sample_every = 100000,.length = 100};
	bool		is_load;
	int			option;

	if (argc < 2 || (strcmp(argv[1], "load") != 0 && strcmp(argv[1], "run") != 0))
		usage();
	is_load = argv[1][0] == 'l';
	o.source.seed = 1;
	o.source.kind = find_kind("int4_random");
	o.limit_s = is_load ? 0 : 5;
	argc--;
	argv++;
	while ((option = getopt(argc, argv, "k:r:s:b:xt:c:f:e:a:nw:i:o:l:p:q:")) != -1)
		parse_option(&o, option, optarg);
	if (argc - optind < (is_load ? 2 : 3) || argc - optind > 2 + (is_load ? 0 : MAX_CLASSES))
		usage();
	o.conninfo = argv[optind];
	o.table = argv[optind + 1];
	for (int i = optind + 2; i < argc; i++)
		o.classes[o.class_count++] = argv[i];

	if (o.rows == 0 || o.batch <= 0 || o.sample_every == 0 || o.clients < 1 || o.clients > MAX_THREADS)
		die("rows, batch, sample and clients must be positive, and clients at most %d", MAX_THREADS);
	if (o.source.binary && o.source.kind->text_only)
		die("rows of kind %s can be made only as text", o.source.kind->name);
	if (!is_load && o.source.kind->key == NULL)
		die("rows of kind %s have no key to look up", o.source.kind->name);
	o.source.total = o.first_row + o.rows;
	if (o.source.kind->prepare != NULL)
		o.source.kind->prepare(&o.source);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (is_load)
		load(&o);
	else
		run(&o);
	return 0;
}
