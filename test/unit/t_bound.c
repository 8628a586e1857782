/*
 * t_bound.c
 *	  Properties of bounds: where entries are, compared column by column.
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

enum
{
	PREFIX, NEXT_TO, OF_KEY, JOINED, SEPARATED, BOUND_ORDER
};

static const char *const names[] = {
	"a bound of columns has the entries before it whose columns are",
	"a bound next to an entry has the entries before it that are before that one",
	"a bound of a key has all entries with that key on one side",
	"a bound of encoded columns, joined, is that of their values",
	"a separator is on the same side of a bound as one of the entries that it separates",
	"two bounds are in the order of the entries that they are next to, then of their sides",
};

static TestIndex the_index;
static TestRow rows[40];
static int	row_count;

/* Values for the first columns of a bound: mostly those of a row. */
typedef struct Prefix
{
	int			columns;
	const TestType *types[MOST_COLUMNS];
	Datum		values[MOST_COLUMNS];
	bool		isnull[MOST_COLUMNS];
} Prefix;

static int
pick_tie(void)
{
	return chance(2) ? 1 : -1;
}

/* A column of a tuple key may be compared with another type. */
static void
pick_prefix(Prefix *p)
{
	const TestRow *row = &rows[pick(row_count)];

	p->columns = pick(the_index.nkeys + 1);
	for (int i = 0; i < p->columns; i++)
	{
		const TestType *type = the_index.columns[i].type;

		p->types[i] = the_index.ks->encoded ? type : types_pick_other(type);
		p->isnull[i] = row->isnull[i];
		if (!p->isnull[i] || chance(2))
		{
			p->isnull[i] = chance(10);
			p->values[i] = row->isnull[i] ? types_value(p->types[i]) :
				types_value_near(p->types[i], type, row->values[i]);
		}
	}
}

static int
compare_with_prefix(const TestRow *row, const Prefix *p, int tie)
{
	for (int i = 0; i < p->columns; i++)
	{
		int			order = rows_compare_value(&the_index.columns[i], row->values[i], row->isnull[i],
											   p->types[i], p->values[i], p->isnull[i]);

		if (order != 0)
			return order;
	}
	return tie;
}

static int
compare_with_row(const TestRow *row, const TestRow *other, int tie)
{
	int			order = rows_compare(&the_index, row, other);

	return order != 0 ? order : tie;
}

/*
 * Separators lead to leaves, so a bound must compare with a separator as with the entries beside
 * it.
 */
static void
check_separators(const LsmBound *bound)
{
	for (int i = 1; i < row_count && the_index.ks->encoded; i++)
	{
		LsmEntry	separator = rows[i].entry;
		int			left = lsm_bound_compare(the_index.ks, bound, &rows[i - 1].entry);
		int			right = lsm_bound_compare(the_index.ks, bound, &rows[i].entry);
		int			at;

		separator.aligned = false;
		if (!lsm_key_equal(the_index.ks, &rows[i - 1].entry, &rows[i].entry))
		{
			separator.keylen = lsm_separator_length(the_index.ks, &rows[i - 1].entry, &rows[i].entry);
			separator.tid = 0;
		}
		at = lsm_bound_compare(the_index.ks, bound, &separator);
		props_expect(SEPARATED, (left < 0 || at > 0) && (right > 0 || at < 0), "rows %d and %d of %s",
					 i - 1, i, rows_describe(&the_index));
	}
}

static void
check_prefix(LsmBound *bound)
{
	Prefix		p;
	int			tie = pick_tie();

	memset(&p, 0, sizeof(p));
	pick_prefix(&p);
	lsm_bound_init(bound, tie);
	for (int i = 0; i < p.columns; i++)
	{
		FmgrInfo   *cmp = NULL;

		if (p.types[i] != the_index.columns[i].type)
		{
			cmp = palloc(sizeof(FmgrInfo));
			fmgr_info(types_operator(the_index.columns[i].type, p.types[i], 0), cmp);
		}
		lsm_bound_add(the_index.ks, bound, p.values[i], p.isnull[i], cmp);
	}
	for (int i = 0; i < row_count; i++)
		props_expect(PREFIX, sign_of(lsm_bound_compare(the_index.ks, bound, &rows[i].entry)) ==
					 compare_with_prefix(&rows[i], &p, tie),
					 "row %d, %d columns, tie %d, %s", i, p.columns, tie, rows_describe(&the_index));
	check_separators(bound);
}

static void
check_entry(LsmBound *bound)
{
	const TestRow *row = &rows[pick(row_count)];
	int			tie = pick_tie();

	lsm_bound_set_entry(bound, &row->entry, tie);
	for (int i = 0; i < row_count; i++)
		props_expect(NEXT_TO, sign_of(lsm_bound_compare(the_index.ks, bound, &rows[i].entry)) ==
					 compare_with_row(&rows[i], row, tie), "row %d, tie %d, %s", i, tie,
					 rows_describe(&the_index));
	check_separators(bound);
}

static void
check_key(LsmBound *bound)
{
	const TestRow *row = &rows[pick(row_count)];
	int			tie = pick_tie();

	lsm_bound_set_key(the_index.ks, bound, &row->entry, tie);
	for (int i = 0; i < row_count; i++)
	{
		int			order = rows_compare_columns(&the_index, &rows[i], row, the_index.nkeys);

		props_expect(OF_KEY, sign_of(lsm_bound_compare(the_index.ks, bound, &rows[i].entry)) ==
					 (order != 0 ? order : tie), "row %d, tie %d, %s", i, tie,
					 rows_describe(&the_index));
	}
	check_separators(bound);
}

/* Some columns as codes, as in scans with combinations, and the others as values. */
static void
check_joined(LsmBound *bound)
{
	Prefix		p;
	int			tie = pick_tie();
	int			coded;
	LsmBound	codes = {0};

	if (!the_index.ks->encoded)
		return;
	memset(&p, 0, sizeof(p));
	pick_prefix(&p);
	coded = pick(p.columns + 1);
	lsm_bound_init(&codes, tie);
	for (int i = 0; i < coded; i++)
		lsm_bound_add(the_index.ks, &codes, p.values[i], p.isnull[i], NULL);
	lsm_bound_init(bound, tie);
	if (coded > 0)
		lsm_bound_add_encoded(bound, codes.key, codes.keylen, coded);
	for (int i = coded; i < p.columns; i++)
		lsm_bound_add(the_index.ks, bound, p.values[i], p.isnull[i], NULL);
	for (int i = 0; i < row_count; i++)
		props_expect(JOINED, sign_of(lsm_bound_compare(the_index.ks, bound, &rows[i].entry)) ==
					 compare_with_prefix(&rows[i], &p, tie), "row %d, %d of %d columns, %s", i, coded,
					 p.columns, rows_describe(&the_index));
}

static void
check_order(void)
{
	LsmBound	bound = {0};
	LsmBound	other = {0};
	int			at = pick(row_count);
	int			other_at = chance(3) ? at : (int) pick(row_count);
	int			tie = pick_tie();
	int			other_tie = pick_tie();
	int			order;

	lsm_bound_set_entry(&bound, &rows[at].entry, tie);
	lsm_bound_set_entry(&other, &rows[other_at].entry, other_tie);
	order = rows_compare(&the_index, &rows[other_at], &rows[at]);
	/* At the same entry, the position before the entry comes first: the one with tie +1. */
	if (order == 0)
		order = sign_of(tie - other_tie);
	props_expect(BOUND_ORDER, sign_of(lsm_bound_order(the_index.ks, &bound, &other)) == order,
				 "rows %d and %d, %s", at, other_at, rows_describe(&the_index));

	/*
	 * If a bound of columns has the entry on one side, it has the adjacent position on the same
	 * side.
	 */
	check_prefix(&bound);
	props_expect(BOUND_ORDER, sign_of(lsm_bound_order(the_index.ks, &bound, &other)) ==
				 sign_of(lsm_bound_compare(the_index.ks, &bound, &rows[other_at].entry)),
				 "row %d, %s", other_at, rows_describe(&the_index));
}

static void
round_of_bounds(void)
{
	LsmBound	bound = {0};	/* reused, as scans do */

	rows_index(&the_index, 4);
	rows_make(&the_index, rows, lengthof(rows));
	row_count = rows_sort(&the_index, rows, lengthof(rows));
	for (int i = 0; i < 5; i++)
	{
		check_prefix(&bound);
		check_entry(&bound);
		check_key(&bound);
		check_joined(&bound);
		check_order();
	}
}

int
main(void)
{
	return props_run(600, round_of_bounds, names, lengthof(names));
}
