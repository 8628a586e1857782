/*
 * filter_habit.h
 *	  Lets lookups skip a filter that keeps answering "perhaps".
 *
 * The largest run holds most keys, so its filter rarely saves a lookup from reading the run. After
 * 16 "perhaps" in a row, 47 lookups skip the filter, and the next lookup asks the filter again.
 */
#ifndef LSM_FILTER_HABIT_H
#define LSM_FILTER_HABIT_H

#define LSM_HABIT_YES_IN_A_ROW	16
#define LSM_HABIT_UNASKED		48

/*
 * The number of "perhaps" in a row.  Once it reaches LSM_HABIT_YES_IN_A_ROW, lookups that skip the
 * filter are added.
 */
typedef uint8 LsmFilterHabit;

/* Do lookups currently ask the filter?  For prefetching, which does not count as a lookup. */
static inline bool
lsm_habit_is_asking(LsmFilterHabit habit)
{
	return habit < LSM_HABIT_YES_IN_A_ROW;
}

/* Should this lookup ask the filter?  Call once per lookup. */
static inline bool
lsm_habit_ask(LsmFilterHabit *habit)
{
	return lsm_habit_is_asking(*habit) ||
		++*habit >= LSM_HABIT_YES_IN_A_ROW + LSM_HABIT_UNASKED;
}

/* Note the filter's answer. */
static inline void
lsm_habit_note(LsmFilterHabit *habit, bool perhaps)
{
	*habit = perhaps ? Min(*habit + 1, LSM_HABIT_YES_IN_A_ROW) : 0;
}

#endif							/* LSM_FILTER_HABIT_H */
