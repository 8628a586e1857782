/* tap.h -- a few lines of TAP for the unit tests. */
#ifndef TAP_H
#define TAP_H

#include "postgres.h"

static int	tap_run;
static int	tap_failed;

static inline bool
ok(bool condition, const char *name)
{
	tap_run++;
	tap_failed += !condition;
	printf("%s %d - %s\n", condition ? "ok" : "not ok", tap_run, name);
	return condition;
}

static inline int
done(void)
{
	printf("1..%d\n", tap_run);
	return tap_failed != 0;
}

/* A small generator with its own seed, so that runs are reproducible. */
static uint64 tap_state = 42;

static inline uint32
rnd(uint32 below)
{
	tap_state = tap_state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
	return (uint32) (tap_state >> 33) % below;
}

#endif
