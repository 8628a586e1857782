/*
 * t_scankeys.c
 *	  Properties of scan keys: bounds, combinations and filters are made from conditions, and a scan
 *	  with them finds the rows for which all conditions hold.
 *
 * The scan here is that of scan/scan_search.c over an array of entries. Where that code may either
 * seek or read on, this scan chooses at random. (The executor decides how row comparisons reach a
 * scan before 18, see planner/row_compare.c and rowcompare in test/regress.)
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

#include "scankey/scankey.h"
#include "core.h"
#include "key/cursor.h"

enum
{
	FOUND, WALK, IMPOSSIBLE, PROGRESS, HAS
};

static const char *const names[] = {
	"a scan finds the rows that satisfy the conditions, in order",
	"also if it changes direction",
	"conditions are reported impossible only if no row satisfies them",
	"with encoded keys, the next combination begins after an entry that is in none",
	"entries between two entries of a combination belong to it",
};

#define MOST_ROWS 60
#define MOST_CONDITIONS 4
#define MOST_ELEMENTS 6

/* column OP value; OP ANY (values); IS [NOT] NULL; or (columns) OP (values). */
typedef struct Condition
{
	enum
	{
		SCALAR, ARRAY, NULL_TEST, ROW
	}			kind;
	int			strategy;		/* of a null test: 0, IS NULL, or 1 */
	int			count;			/* elements or members */
	int			columns[MOST_ELEMENTS]; /* scalars, arrays: the first one */
	const TestType *types[MOST_ELEMENTS];
	Datum		values[MOST_ELEMENTS];
	bool		isnull[MOST_ELEMENTS];
	bool		is_null_array;
} Condition;

static TestIndex the_index;
static TestRow rows[MOST_ROWS];
static int	row_count;
static Condition conditions[MOST_CONDITIONS];
static int	condition_count;
static ScanKeyData scan_keys[MOST_CONDITIONS];
static LsmScanKeys keys;
static int	matches[MOST_ROWS];	/* rows for which all conditions hold */
static int	match_count;

/* --- conditions, as SQL has them ------------------------------------------------- */

/* A value to compare a column with: mostly one that exists. */
static Datum
pick_value(const TestColumn *column, const TestType *type)
{
	return types_value_near(type, column->type, column->values[pick(column->count)]);
}

static void
pick_condition(Condition *c)
{
	int			column = c > conditions && chance(2) ? c[-1].columns[0] : (int) pick(the_index.nkeys);
	const TestType *type = types_pick_other(the_index.columns[column].type);

	memset(c, 0, sizeof(Condition));
	c->kind = chance(4) ? NULL_TEST : chance(3) ? ARRAY : chance(3) ? ROW : SCALAR;
	c->strategy = 1 + pick(5);
	c->count = 1;
	if (c->kind == NULL_TEST)
		c->strategy = pick(2);
	if (c->kind == ARRAY)
	{
		c->count = pick(MOST_ELEMENTS + 1);
		c->strategy = chance(4) ? c->strategy : 3;
		c->is_null_array = chance(40);
	}
	if (c->kind == SCALAR && chance(3))
		c->strategy = 3;
	if (c->kind == ROW)
	{
		c->count += pick(3);
		while (c->strategy == 3)
			c->strategy = 1 + pick(5);
	}
	for (int i = 0; i < c->count; i++)
	{
		/* The members of a row are mostly columns that follow each other. */
		if (c->kind == ROW && i > 0)
		{
			column = chance(6) ? (int) pick(the_index.nkeys) : (column + 1) % the_index.nkeys;
			type = types_pick_other(the_index.columns[column].type);
		}
		c->columns[i] = column;
		c->types[i] = type;
		c->isnull[i] = chance(c->kind == ARRAY ? 10 : 30);
		c->values[i] = pick_value(&the_index.columns[column], type);
	}
	c->columns[0] = c->count > 0 ? c->columns[0] : column;
	c->types[0] = c->count > 0 ? c->types[0] : type;
}

/* The first members that differ decide a row comparison. With a null the result is unknown. */
static bool
row_holds(const Condition *c, const TestRow *row)
{
	int			order = 0;

	for (int i = 0; i < c->count && order == 0; i++)
	{
		int			column = c->columns[i];

		if (row->isnull[column] || c->isnull[i])
			return false;
		order = types_compare(the_index.columns[column].type, row->values[column], c->types[i],
							  c->values[i]);
	}
	return types_holds(c->strategy, order);
}

static bool
holds(const Condition *c, const TestRow *row)
{
	int			column = c->columns[0];

	if (c->kind == NULL_TEST)
		return row->isnull[column] == (c->strategy == 0);
	if (c->kind == ROW)
		return row_holds(c, row);
	if (row->isnull[column] || c->is_null_array)
		return false;
	for (int i = 0; i < c->count; i++)
	{
		if (!c->isnull[i] &&
			types_holds(c->strategy, types_compare(the_index.columns[column].type, row->values[column],
												   c->types[0], c->values[i])))
			return true;
	}
	return false;
}

static void
find_matches(void)
{
	match_count = 0;
	for (int r = 0; r < row_count; r++)
	{
		bool		all = true;

		for (int i = 0; i < condition_count; i++)
			all &= holds(&conditions[i], &rows[r]);
		if (all)
			matches[match_count++] = r;
	}
}

/* --- conditions, as the executor hands them over ------------------------------------ */

static void
set_function(ScanKey key, const Condition *c, int i, int strategy)
{
	const TestType *type = the_index.columns[c->columns[i]].type;

	key->sk_attno = c->columns[i] + 1;
	key->sk_strategy = c->strategy;
	key->sk_collation = type->collation;
	key->sk_subtype = c->types[i] == type && chance(2) ? InvalidOid : c->types[i]->oid;
	key->sk_argument = c->values[i];
	fmgr_info(types_operator(type, c->types[i], strategy), &key->sk_func);
}

static ScanKey
make_members(const Condition *c)
{
	ScanKey		members = palloc0(c->count * sizeof(ScanKeyData));

	for (int i = 0; i < c->count; i++)
	{
		set_function(&members[i], c, i, 0);
		members[i].sk_flags = SK_ROW_MEMBER | (i == c->count - 1 ? SK_ROW_END : 0) |
			(c->isnull[i] ? SK_ISNULL : 0);
	}
	return members;
}

static void
make_key(ScanKey key, const Condition *c)
{
	memset(key, 0, sizeof(ScanKeyData));
	key->sk_attno = c->columns[0] + 1;
	key->sk_strategy = c->strategy;
	switch (c->kind)
	{
		case NULL_TEST:
			key->sk_flags = SK_ISNULL | (c->strategy == 0 ? SK_SEARCHNULL : SK_SEARCHNOTNULL);
			key->sk_strategy = InvalidStrategy;
			break;
		case ROW:
			key->sk_flags = SK_ROW_HEADER;
			key->sk_argument = PointerGetDatum(make_members(c));
			break;
		case ARRAY:
			set_function(key, c, 0, c->strategy);
			key->sk_flags = SK_SEARCHARRAY | (c->is_null_array ? SK_ISNULL : 0);
			key->sk_argument = core_make_array(c->types[0]->oid, c->values, c->isnull, c->count);
			break;
		case SCALAR:
			set_function(key, c, 0, c->strategy);
			key->sk_flags = c->isnull[0] ? SK_ISNULL : 0;
			break;
	}
}

static const char *
describe(void)
{
	static const char *const operators[] = {"null", "<", "<=", "=", ">=", ">"};
	static char text[2000];
	int			n = sprintf(text, "%s:", rows_describe(&the_index));

	for (int i = 0; i < condition_count; i++)
	{
		const Condition *c = &conditions[i];

		n += sprintf(text + n, "%s", i > 0 ? " and" : "");
		for (int m = 0; m < (c->kind == ROW ? c->count : 1); m++)
			n += sprintf(text + n, " %d", c->columns[m] + 1);
		if (c->kind == NULL_TEST)
			n += sprintf(text + n, " is%s null", c->strategy == 0 ? "" : " not");
		else
			n += sprintf(text + n, " %s%s %s", operators[c->strategy],
						 c->kind == ARRAY ? " any" : c->kind == ROW ? " row" : "", c->types[0]->name);
	}
	return text;
}

/* --- a scan ---------------------------------------------------------------------------- */

/* The scan's position: a row, or -1. */
static int	at;
static int	surely_in;

/* The first row after a bound, in a direction. */
static int
seek(const LsmBound *from, bool forward)
{
	int			r = forward ? 0 : row_count - 1;

	while (r >= 0 && r < row_count &&
		   (lsm_bound_compare(the_index.ks, from, &rows[r].entry) > 0) != forward)
		r += forward ? 1 : -1;
	surely_in = 0;
	return r;
}

/* All entries up to the chosen row are in the combination if that row is. */
static void
look_ahead(int r, bool forward)
{
	int			ahead = pick(8);
	int			last = forward ? r + ahead : r - ahead;
	LsmScanKeys copy;

	if (last < 0 || last >= row_count || !lsm_combination_has(&keys, &rows[last].entry))
		return;
	surely_in = ahead;
	copy = keys;
	for (int i = r; i != last; i += forward ? 1 : -1)
		props_expect(HAS, lsm_combination_has(&copy, &rows[i].entry), "row %d, %s", i, describe());
}

/* Move to the first of a few entries that is in some combination, or to the last of them. */
static LsmPlace
find_combination(const LsmBound *limit, ScanDirection direction)
{
	int			step = ScanDirectionIsForward(direction) ? 1 : -1;
	int			most = 1 + pick(6);
	int			count = 0;
	LsmEntry	entries[6];
	int			n;

	for (int i = at; i >= 0 && i < row_count && count < most; i += step)
	{
		if (lsm_beyond(the_index.ks, limit, &rows[i].entry, direction))
			break;
		entries[step > 0 ? count : most - 1 - count] = rows[i].entry;
		count++;
	}
	n = lsm_combination_find(&keys, &entries[step > 0 ? 0 : most - 1], step, count);
	at += step * (n < count ? n : n - 1);
	return n < count ? LSM_PLACE_IN : LSM_PLACE_OUTSIDE;
}

/*
 * Move on to an entry that is in a combination and passes the filters. Returns false if none is
 * left.
 */
static bool
find_match(bool forward)
{
	ScanDirection direction = forward ? ForwardScanDirection : BackwardScanDirection;
	const LsmBound *limit = forward ? &keys.high : &keys.low;
	int			step = forward ? 1 : -1;
	LsmBound	next = {0};

	for (;; at += step, surely_in--)
	{
		LsmPlace	place = LSM_PLACE_IN;

		if (at < 0 || at >= row_count || lsm_beyond(the_index.ks, limit, &rows[at].entry, direction))
			return false;
		if (keys.can_filter && surely_in <= 0 && chance(3))
			place = find_combination(limit, direction);
		else if (keys.has_combinations && surely_in <= 0)
			place = lsm_combination_place(&keys, &rows[at].entry, direction);
		if (place == LSM_PLACE_END)
			return false;
		if (place == LSM_PLACE_OUTSIDE)
			continue;
		if (place == LSM_PLACE_BEFORE)
		{
			int			to;

			if (chance(3))
				continue;
			lsm_combination_bound(&keys, &next, forward);
			to = seek(&next, forward);
			/* Ends that cannot be compared: a row may equal the bound, and the scan reads on. */
			if (!the_index.ks->encoded && (to - at) * step <= 0)
				continue;
			if (!props_expect(PROGRESS, (to - at) * step > 0, "from row %d to %d, %s", at, to,
							  describe()))
				return false;
			at = to - step;
			continue;
		}
		if (keys.has_combinations && surely_in <= 0)
			look_ahead(at, forward);
		if (lsm_scankeys_pass(&keys, &rows[at].entry))
			return true;
	}
}

static bool
start_scan(bool forward)
{
	lsm_combination_begin(&keys, forward ? ForwardScanDirection : BackwardScanDirection);
	at = seek(forward ? &keys.low : &keys.high, forward);
	return find_match(forward);
}

/* Move from the last row found to the next one, perhaps in the other direction. */
static bool
go_on(bool forward, bool turned)
{
	LsmBound	here = {0};

	if (turned || chance(4))
	{
		lsm_bound_set_entry(&here, &rows[at].entry, forward ? -1 : 1);
		at = seek(&here, forward);
	}
	else
	{
		at += forward ? 1 : -1;
		surely_in--;
	}
	return find_match(forward);
}

static void
check_scan(bool forward)
{
	bool		found = start_scan(forward);

	for (int i = 0; i < match_count; i++)
	{
		int			expected = matches[forward ? i : match_count - 1 - i];

		if (!props_expect(FOUND, found && at == expected, "row %d of %d expected, %s %d, %s", expected,
						  row_count, found ? "found" : "nothing found after", at, describe()))
			return;
		found = go_on(forward, false);
	}
	props_expect(FOUND, !found, "row %d found but not expected, %s", at, describe());
}

/* A cursor that moves back and forth. Beyond an end it starts there again. */
static void
check_walk(void)
{
	int			place = -1;
	bool		forward = chance(2);

	for (int i = 0; i < 30; i++)
	{
		bool		turned = place >= 0 && chance(4);
		bool		found;

		forward = place < 0 ? chance(2) : forward != turned;
		found = place < 0 ? start_scan(forward) : go_on(forward, turned);
		place = place >= 0 ? place + (forward ? 1 : -1) : forward ? 0 : match_count - 1;
		if (place >= match_count)
			place = -1;
		if (!props_expect(WALK, place < 0 ? !found : found && at == matches[place],
						  "%s %d, %s", found ? "found" : "nothing found after", at, describe()))
			return;
	}
}

static void
round_of_scans(void)
{
	rows_index(&the_index, 4);
	rows_make(&the_index, rows, MOST_ROWS);
	row_count = rows_sort(&the_index, rows, MOST_ROWS);
	for (int i = 0; i < 4; i++)
	{
		condition_count = pick(MOST_CONDITIONS + 1);
		for (int c = 0; c < condition_count; c++)
		{
			pick_condition(&conditions[c]);
			make_key(&scan_keys[c], &conditions[c]);
		}
		find_matches();
		lsm_scankeys_prepare(&keys, the_index.ks, scan_keys, condition_count);
		props_expect(IMPOSSIBLE, !keys.impossible || match_count == 0, "%s", describe());
		if (keys.impossible)
			continue;
		check_scan(true);
		check_scan(false);
		check_walk();
	}
}

int
main(void)
{
	return props_run(4000, round_of_scans, names, lengthof(names));
}
