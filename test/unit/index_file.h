/* index_file.h -- an index file in memory, for code that changes the manifest. */
#ifndef INDEX_FILE_H
#define INDEX_FILE_H

#include "manifest/manifest.h"

#define FILE_BLOCKS 4096

/* The index.  Its keys are encoded: eight bytes, see file_key(). */
extern LsmIndex file_index;
extern LsmKeySpace file_keyspace;

/* The job that another process is working on, or 0. */
extern uint64 file_busy_job;

/* Where the file was truncated; 0: it was not. */
extern BlockNumber file_cut_at;

/*
 * Drop all pages but the meta page from memory. After that, count the pages read from disk under
 * the lock of the meta page, and the directory pages searched under that lock.
 */
extern void file_go_cold(void);
extern int	file_cold_reads;
extern int	file_searches;

/*
 * Called once, before the next edit locks the meta page. Plays another process that comes in
 * between.
 */
extern void (*file_before_edit) (void);

/* An empty index. */
extern void file_make(void);
extern Page file_page(BlockNumber block);

/* An entry whose key is this number. It lives until backend_free_all(). */
extern LsmEntry file_key(uint64 number);

/*
 * NULL, or a description of the fault: a block with two users, without a user, or used although
 * free (I2); a reservation without a job (I3); an input without an output (I8); sums that do not
 * match the segments.
 */
extern const char *file_fault(void);

#endif
