/*
 * disk.c
 *	  A library for LD_PRELOAD that gives a server a small and faulty disk.
 *
 * The file that LSM_DISK names is shared with the test, which changes it while the server runs: see
 * Disk.  Files below the folder may grow by `room` bytes.  After that, whatever makes them longer
 * fails with ENOSPC, or writes less than it should, as on a real disk.  Shorter and removed files
 * give their room back.  Apart from that, reads, writes and flushes of files below the folder fail
 * with EIO now and then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../preload.h"

typedef struct
{
	_Atomic int64_t room;
	int64_t		read_errors;	/* one of so many reads fails; 0: none */
	int64_t		write_errors;
	int64_t		flush_errors;
	char		folder[1024];	/* its real path, with a slash at the end */
} Disk;

#define SECTOR		4096

static Disk *disk;

__attribute__((constructor))
static void
attach(void)
{
	const char *path = getenv("LSM_DISK");
	int			fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	disk = mmap(NULL, sizeof(Disk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (disk == MAP_FAILED)
		abort();
	close(fd);
}

static bool
is_ours(int fd)
{
	char		link[64];
	char		path[4096];
	int			saved = errno;
	ssize_t		length;

	if (disk == NULL || fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	errno = saved;
	if (length < 0)
		return false;
	path[length] = '\0';
	return strncmp(path, disk->folder, strlen(disk->folder)) == 0;
}

/* Fails a call on one of our files, one in so many. */
static bool
fails(int64_t one_in)
{
	static uint64_t state;

	if (one_in <= 0)
		return false;
	state = (state ^ getpid()) * 6364136223846793005 + 1442695040888963407;
	if ((state >> 33) % one_in != 0)
		return false;
	errno = EIO;
	return true;
}

static int64_t
size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : INT64_MAX;
}

static bool
take(int64_t bytes)
{
	if (bytes <= 0 || atomic_fetch_sub_explicit(&disk->room, bytes, memory_order_relaxed) >= bytes)
		return true;
	disk->room += bytes;
	return false;
}

/* How many of the bytes can be written.  -1 and errno if none can. */
static ssize_t
writable(int fd, size_t length, int64_t offset)
{
	int64_t		growth = offset + (int64_t) length - size_of(fd);
	int64_t		fits;

	if (fails(disk->write_errors))
		return -1;
	if (take(growth))
		return length;
	/* Whole sectors, for the sake of direct I/O. */
	fits = disk->room / SECTOR * SECTOR;
	if (fits <= 0 || fits > growth || !take(fits))
		fits = 0;
	if ((int64_t) length > growth - fits)
		return length - (growth - fits);
	disk->room += fits;
	errno = ENOSPC;
	return -1;
}

ssize_t
write(int fd, const void *data, size_t length)
{
	if (is_ours(fd))
	{
		ssize_t		fits = writable(fd, length, lseek(fd, 0, SEEK_CUR));

		if (fits < 0)
			return -1;
		length = fits;
	}
	return REAL(write) (fd, data, length);
}

#define DEFINE_PWRITE(name, offset_type) \
ssize_t \
name(int fd, const void *data, size_t length, offset_type offset) \
{ \
	if (is_ours(fd)) \
	{ \
		ssize_t		fits = writable(fd, length, offset); \
\
		if (fits < 0) \
			return -1; \
		length = fits; \
	} \
	return REAL(name) (fd, data, length, offset); \
}

DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)

/* If not all fits, writes a part of the first element, or all of it. */
#define DEFINE_PWRITEV(name, offset_type) \
ssize_t \
name(int fd, const struct iovec *iov, int count, offset_type offset) \
{ \
	if (is_ours(fd)) \
	{ \
		size_t		length = total(iov, count); \
		ssize_t		fits = writable(fd, length, offset); \
\
		if (fits < 0) \
			return -1; \
		if ((size_t) fits < length) \
			return REAL(pwrite64) (fd, iov[0].iov_base, (size_t) fits < iov[0].iov_len ? (size_t) fits : iov[0].iov_len, offset); \
	} \
	return REAL(name) (fd, iov, count, offset); \
}

DEFINE_PWRITEV(pwritev, off_t)
DEFINE_PWRITEV(pwritev64, off64_t)

#define DEFINE_READ(name, data_type, length_type, offset_type) \
ssize_t \
name(int fd, data_type data, length_type length, offset_type offset) \
{ \
	if (disk != NULL && disk->read_errors > 0 && is_ours(fd) && fails(disk->read_errors)) \
		return -1; \
	return REAL(name) (fd, data, length, offset); \
}

DEFINE_READ(pread, void *, size_t, off_t)
DEFINE_READ(pread64, void *, size_t, off64_t)
DEFINE_READ(preadv, const struct iovec *, int, off_t)
DEFINE_READ(preadv64, const struct iovec *, int, off64_t)

#define DEFINE_FLUSH(name) \
int \
name(int fd) \
{ \
	if (disk != NULL && disk->flush_errors > 0 && is_ours(fd) && fails(disk->flush_errors)) \
		return -1; \
	return REAL(name) (fd); \
}

DEFINE_FLUSH(fsync)
DEFINE_FLUSH(fdatasync)

/* Returns an error number, unlike the others. */
#define DEFINE_FALLOCATE(name, offset_type) \
int \
name(int fd, offset_type offset, offset_type length) \
{ \
	if (is_ours(fd) && !take(offset + length - size_of(fd))) \
		return ENOSPC; \
	return REAL(name) (fd, offset, length); \
}

DEFINE_FALLOCATE(posix_fallocate, off_t)
DEFINE_FALLOCATE(posix_fallocate64, off64_t)

#define DEFINE_FTRUNCATE(name, offset_type) \
int \
name(int fd, offset_type length) \
{ \
	int64_t		growth; \
	int			result; \
\
	if (!is_ours(fd)) \
		return REAL(name) (fd, length); \
	growth = length - size_of(fd); \
	if (!take(growth)) \
	{ \
		errno = ENOSPC; \
		return -1; \
	} \
	result = REAL(name) (fd, length); \
	if (result == 0 && growth < 0) \
		disk->room -= growth; \
	return result; \
}

DEFINE_FTRUNCATE(ftruncate, off_t)
DEFINE_FTRUNCATE(ftruncate64, off64_t)

int
unlink(const char *path)
{
	int64_t		size = 0;
	int			result;

	if (disk != NULL)
	{
		int			fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0)
		{
			struct stat st;

			if (is_ours(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
				size = st.st_size;
			close(fd);
		}
	}
	result = REAL(unlink) (path);
	if (result == 0 && size > 0)
		disk->room += size;
	return result;
}
