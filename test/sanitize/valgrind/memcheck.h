/*
 * memcheck.h
 *	  Valgrind's client requests, for AddressSanitizer.
 *
 * PostgreSQL tells Valgrind which bytes of its memory contexts and shared buffers may be touched, if
 * it is built with USE_VALGRIND.  With this header in place of Valgrind's, it tells
 * AddressSanitizer.  So a read beyond the end of a palloc'd array, in freed memory or in a page
 * without a pin is reported.
 *
 * AddressSanitizer does not know which bytes are initialised, so questions about these do nothing.
 */
#ifndef LSM_MEMCHECK_H
#define LSM_MEMCHECK_H

#include <sanitizer/asan_interface.h>

#ifndef __SANITIZE_ADDRESS__
#error "this memcheck.h is for -fsanitize=address"
#endif

#define RUNNING_ON_VALGRIND		0

/* Which bytes may be touched */
#define VALGRIND_MAKE_MEM_NOACCESS(addr, size)		__asan_poison_memory_region(addr, size)
#define VALGRIND_MAKE_MEM_UNDEFINED(addr, size)		__asan_unpoison_memory_region(addr, size)
#define VALGRIND_MAKE_MEM_DEFINED(addr, size)		__asan_unpoison_memory_region(addr, size)

/*
 * Memory contexts.  PostgreSQL makes the blocks of a context inaccessible itself.  It gives no size
 * with what it frees, but wipes that before or after.
 */
#define VALGRIND_CREATE_MEMPOOL(pool, redzone, zeroed)	((void) 0)
#define VALGRIND_DESTROY_MEMPOOL(pool)					((void) 0)
#define VALGRIND_MEMPOOL_TRIM(pool, addr, size)			((void) 0)
#define VALGRIND_MEMPOOL_ALLOC(pool, addr, size)		__asan_unpoison_memory_region(addr, size)
#define VALGRIND_MEMPOOL_FREE(pool, addr)				((void) 0)
#define VALGRIND_MEMPOOL_CHANGE(pool, old, addr, size)	__asan_unpoison_memory_region(addr, size)

/* What is initialised */
#define VALGRIND_CHECK_MEM_IS_DEFINED(addr, size)		((void) 0)
#define VALGRIND_CHECK_VALUE_IS_DEFINED(value)			((void) 0)

/* Reports */
#define VALGRIND_COUNT_ERRORS							0
#define VALGRIND_PRINTF(...)							((void) 0)
#define VALGRIND_DISABLE_ERROR_REPORTING				((void) 0)
#define VALGRIND_ENABLE_ERROR_REPORTING					((void) 0)
#define VALGRIND_DO_LEAK_CHECK							((void) 0)
#define VALGRIND_DO_ADDED_LEAK_CHECK					((void) 0)

#endif
