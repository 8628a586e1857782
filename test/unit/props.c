/*
 * props.c
 *	  Runs rounds of property tests, each with its own seed, and reports the results.
 */
#include "props.h"

#include <stdarg.h>

#include "backend.h"
#include "tap.h"

#define MOST_PROPERTIES 16
#define MOST_SHOWN 3

static uint64 state;
static uint64 seed;
static const char *const *property_names;
static int64 checked[MOST_PROPERTIES];
static int64 failed[MOST_PROPERTIES];

/* Splitmix64: each seed, even 1, 2, 3, gives a different sequence. */
uint64
pick_bits(void)
{
	uint64		z = (state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint32
pick(uint32 below)
{
	return (uint32) (pick_bits() >> 32) % below;
}

void
pick_seed(uint64 from)
{
	state = from;
}

bool
props_expect(int property, bool holds, const char *format,...)
{
	va_list		args;

	checked[property]++;
	if (holds)
		return true;
	if (failed[property]++ < MOST_SHOWN)
	{
		printf("# %s: does not hold with PROPERTY_SEED=" UINT64_FORMAT ":\n#   ",
			   property_names[property], seed);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n");
	}
	return false;
}

static uint64
setting(const char *name, uint64 otherwise)
{
	const char *value = getenv(name);

	return value != NULL ? strtou64(value, NULL, 10) : otherwise;
}

int
props_run(int rounds, void (*round) (void), const char *const *names, int count)
{
	uint64		first = setting("PROPERTY_SEED", 1);

	Assert(count <= MOST_PROPERTIES);
	property_names = names;
	rounds = setting("PROPERTY_ROUNDS", rounds);
	for (seed = first; seed < first + rounds; seed++)
	{
		sigjmp_buf	caught;

		state = seed;
		backend_catch = &caught;
		if (sigsetjmp(caught, 0) == 0)
			round();
		else
		{
			printf("# an error was raised with PROPERTY_SEED=" UINT64_FORMAT "\n", seed);
			failed[0]++;
		}
		backend_catch = NULL;
		backend_free_all();
	}
	/* A property that was never checked has not been tested. */
	for (int i = 0; i < count; i++)
		ok(failed[i] == 0 && checked[i] > 0, names[i]);
	return done();
}
