/*
 * preload.h
 *	  What libraries for LD_PRELOAD share: test/power/power.c and test/torture/disk.c.
 */
#ifndef LSM_TEST_PRELOAD_H
#define LSM_TEST_PRELOAD_H

#include <dlfcn.h>
#include <stddef.h>
#include <sys/uio.h>

/* The function that a library hides.  Needs _GNU_SOURCE. */
#define REAL(name)	((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

static size_t
total(const struct iovec *iov, int count)
{
	size_t		length = 0;

	for (int i = 0; i < count; i++)
		length += iov[i].iov_len;
	return length;
}

#endif							/* LSM_TEST_PRELOAD_H */
