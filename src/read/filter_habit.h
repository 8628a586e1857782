/*
 * filter_habit.h
 *	  When lookups stop asking a filter because it keeps saying "perhaps".
 *
 * The largest run holds most keys, so lookups read it whatever its filter says.  After
 * 16 "perhaps" in a row, lookups go without the filter 47 times, then try it again.
 */
#ifndef LSM_FILTER_HABIT_H
#define LSM_FILTER_HABIT_H

#define LSM_HABIT_YES_IN_A_ROW	16
#define LSM_HABIT_UNASKED		48

/* "Perhaps" in a row; from LSM_HABIT_YES_IN_A_ROW on it counts lookups that did not ask. */
typedef uint8 LsmFilterHabit;

/* Do lookups currently ask the filter?  For prefetching: this lookup is not counted. */
static inline bool
lsm_habit_is_asking(LsmFilterHabit habit)
{
	return habit < LSM_HABIT_YES_IN_A_ROW;
}

/* A lookup comes.  Does it ask the filter? */
static inline bool
lsm_habit_ask(LsmFilterHabit *habit)
{
	return lsm_habit_is_asking(*habit) ||
		++*habit >= LSM_HABIT_YES_IN_A_ROW + LSM_HABIT_UNASKED;
}

/* The filter has answered. */
static inline void
lsm_habit_note(LsmFilterHabit *habit, bool perhaps)
{
	*habit = perhaps ? Min(*habit + 1, LSM_HABIT_YES_IN_A_ROW) : 0;
}

#endif							/* LSM_FILTER_HABIT_H */
