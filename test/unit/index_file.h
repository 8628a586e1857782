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

/* The block at which the file was truncated, or 0. */
extern BlockNumber file_cut_at;

/*
 * Drop all pages but the meta page from memory. After that, count the pages read from disk under
 * the lock of the meta page, and the directory pages searched under that lock.
 */
extern void file_go_cold(void);
extern int	file_cold_reads;
extern int	file_searches;

/*
 * Called once, before the next edit locks the meta page. Simulates another process that acts in
 * between.
 */
extern void (*file_before_edit) (void);

/* Make an empty index. */
extern void file_make(void);
extern Page file_page(BlockNumber block);

/* Returns an entry whose key is this number. The entry lives until backend_free_all(). */
extern LsmEntry file_key(uint64 number);

/*
 * Returns NULL if the file is sound, or a description of the fault: a block with two users, without
 * a user, or used although free (I2); a reservation without a job (I3); an input without an output
 * (I8); totals that do not match the segments.
 */
extern const char *file_fault(void);

#endif
