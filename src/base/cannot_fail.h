/*
 * cannot_fail.h
 *	  Marks code that must not fail, because it runs after the commit record.
 *
 * An error in such code would be an error of a transaction that has committed.  In builds with
 * assertions, allocating memory in it fails an assertion, and any error stops the server.
 * tools/check_layers.py finds other violations.
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
