/*
 * props.h
 *	  Property tests: random indexes and rows, and the properties that must hold for them.
 *
 * Each round has a seed, and all its random values come from pick().  If a property fails, the test
 * prints the seed.  PROPERTY_SEED=n starts with seed n, and PROPERTY_ROUNDS sets the number of
 * rounds.
 *
 * The oracle is types.c: it defines the order of each type in the simplest way, independently of
 * how keys are encoded.  test/regress (types, random_values) and test/oracle check that this is the
 * order of the operator classes: there core sorts.
 */
#ifndef PROPS_H
#define PROPS_H

#include "postgres.h"

#include "key/keyspace.h"
#include "types.h"

/* --- chance ---------------------------------------------------------------- */

extern uint32 pick(uint32 below);
extern uint64 pick_bits(void);
/* Begin another sequence of random values. */
extern void pick_seed(uint64 seed);

/* Returns true in one of this many cases. */
#define chance(n) (pick(n) == 0)

/* --- rounds and properties, props.c ------------------------------------------ */

/* Run rounds; then print a line for each property.  Returns the exit status. */
extern int	props_run(int rounds, void (*round) (void), const char *const *names, int count);
/* Record whether a property holds in this case. Print the details if it does not. */
extern bool props_expect(int property, bool holds, const char *format,...)
			pg_attribute_printf(3, 4);

/* --- indexes and rows, rows.c ------------------------------------------------ */

#define MOST_COLUMNS 5
#define MOST_VALUES 8

typedef struct TestColumn
{
	const TestType *type;
	bool		desc;
	bool		nulls_first;
	int32		typmod;
	int			nulls;			/* one value in this many is null; 0: none */
	int			count;
	Datum		values[MOST_VALUES];
} TestColumn;

typedef struct TestIndex
{
	int			nkeys;
	int			natts;
	TestColumn	columns[MOST_COLUMNS];
	Relation	relation;
	LsmKeySpace *ks;
} TestIndex;

typedef struct TestRow
{
	Datum		values[MOST_COLUMNS];
	bool		isnull[MOST_COLUMNS];
	LsmEntry	entry;
} TestRow;

/* An index of 1 to most_keys columns. */
extern void rows_index(TestIndex *index, int most_keys);
extern void rows_make(const TestIndex *index, TestRow *rows, int count);
/* Sort, and drop rows that have the same key and TID. */
extern int	rows_sort(const TestIndex *index, TestRow *rows, int count);
/* Compare the first columns of rows, without TIDs. */
extern int	rows_compare_columns(const TestIndex *index, const TestRow *a, const TestRow *b,
								 int columns);
extern int	rows_compare(const TestIndex *index, const TestRow *a, const TestRow *b);
extern int	rows_compare_value(const TestColumn *column, Datum x, bool x_null,
							   const TestType *right, Datum y, bool y_null);
extern const char *rows_describe(const TestIndex *index);

static inline int
sign_of(int c)
{
	return c < 0 ? -1 : c > 0;
}

#endif
