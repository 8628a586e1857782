/*
 * power.c
 *	  A library for LD_PRELOAD that remembers what a loss of power could undo.
 *
 * Before a server overwrites a part of a file, the library saves the old
 * contents to the log that LSM_POWER_LOG names.  It also logs each flush of a
 * file.  After the server was killed, 013_power.pl undoes writes that were never
 * flushed, or halves of them.  Names and lengths of files count as flushed at
 * once.  A write that happens while another process flushes the same file may
 * count as flushed, but a flushed write never counts as unflushed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../preload.h"

typedef struct
{
	uint64_t	inode;
	uint64_t	offset;
	uint32_t	length;			/* of what is written; 0: the file was flushed, or is gone */
	uint32_t	before;			/* bytes of it that were there before: they follow */
} Record;

/* One write to a file opened with O_APPEND, so records of several processes do not mix. */
static void
note(uint64_t inode, int fd, size_t length, off_t offset)
{
	static int	log_fd = -1;
	const char *path = getenv("LSM_POWER_LOG");
	Record	   *record;
	ssize_t		before = 0;

	if (path == NULL)
		return;
	if (log_fd < 0)
		log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	record = malloc(sizeof(Record) + length);
	if (log_fd < 0 || record == NULL)
		abort();
	if (length > 0)
	{
		/* Files opened for writing only are read by another descriptor. */
		before = pread(fd, record + 1, length, offset);
		if (before < 0)
		{
			char		name[64] = "/proc/self/fd/";
			int			n = fd;
			int			digits = 1;
			int			read_fd;

			for (int rest = fd; rest >= 10; rest /= 10)
				digits++;
			for (int i = digits; i-- > 0; n /= 10)
				name[14 + i] = '0' + n % 10;
			read_fd = open(name, O_RDONLY | O_CLOEXEC);
			before = pread(read_fd, record + 1, length, offset);
			close(read_fd);
		}
		if (before < 0)
			abort();
	}
	*record = (Record) {inode, offset, length, before};
	if (write(log_fd, record, sizeof(Record) + before) != (ssize_t) (sizeof(Record) + before))
		abort();
	free(record);
}

static void
note_fd(int fd, size_t length, off_t offset)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		note(st.st_ino, fd, length, offset);
}

ssize_t
pwrite(int fd, const void *data, size_t length, off_t offset)
{
	note_fd(fd, length, offset);
	return REAL(pwrite) (fd, data, length, offset);
}

ssize_t
pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
	note_fd(fd, length, offset);
	return REAL(pwrite64) (fd, data, length, offset);
}

ssize_t
pwritev(int fd, const struct iovec *iov, int count, off_t offset)
{
	note_fd(fd, total(iov, count), offset);
	return REAL(pwritev) (fd, iov, count, offset);
}

ssize_t
pwritev64(int fd, const struct iovec *iov, int count, off64_t offset)
{
	note_fd(fd, total(iov, count), offset);
	return REAL(pwritev64) (fd, iov, count, offset);
}

int
fsync(int fd)
{
	int			result = REAL(fsync) (fd);

	if (result == 0)
		note_fd(fd, 0, 0);
	return result;
}

int
fdatasync(int fd)
{
	int			result = REAL(fdatasync) (fd);

	if (result == 0)
		note_fd(fd, 0, 0);
	return result;
}

/* Another file may get the inode. */
int
unlink(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		note(st.st_ino, -1, 0, 0);
	return REAL(unlink) (path);
}

int
ftruncate(int fd, off_t length)
{
	note_fd(fd, 0, 0);
	return REAL(ftruncate) (fd, length);
}

int
ftruncate64(int fd, off64_t length)
{
	note_fd(fd, 0, 0);
	return REAL(ftruncate64) (fd, length);
}
