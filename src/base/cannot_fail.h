/*
 * cannot_fail.h
 *	  Marks code that must not fail, because it may run after the commit record.
 *
 * An error in such code would report the failure of a transaction that has already committed.  In
 * builds with assertions, such code runs as a critical section: allocating memory fails an
 * assertion, and any error is a PANIC.  tools/check_layers.py finds further violations, such as
 * locks and interrupt checks.
 */
#ifndef LSM_CANNOT_FAIL_H
#define LSM_CANNOT_FAIL_H

#include "miscadmin.h"

#ifdef USE_ASSERT_CHECKING
#define LSM_CANNOT_FAIL_BEGIN() START_CRIT_SECTION()
#define LSM_CANNOT_FAIL_END() END_CRIT_SECTION()
#else
#define LSM_CANNOT_FAIL_BEGIN() ((void) 0)
#define LSM_CANNOT_FAIL_END() ((void) 0)
#endif

#endif
