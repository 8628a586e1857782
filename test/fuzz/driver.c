/*
 * driver.c
 *	  Replays inputs where there is no libFuzzer: all files in the folders that are named.
 *
 *	  f_NAME corpus/NAME...
 *
 * Prints a line of TAP for each folder: the number of its files, or the file that has a fault.
 */
#include "fuzz.h"

#include <dirent.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MOST_SECONDS 60			/* an input that takes longer runs without end */
#define MOST_PATH 4096

static void
replay(const char *path)
{
	FILE	   *file = fopen(path, "rb");
	struct stat status;
	uint8	   *data;
	size_t		size;

	if (file == NULL || fstat(fileno(file), &status) != 0)
	{
		perror(path);
		exit(1);
	}
	data = malloc(status.st_size + 1);
	size = fread(data, 1, status.st_size, file);
	fclose(file);
	/* The allocation ends where the input ends. */
	data = realloc(data, Max(size, 1));
	alarm(MOST_SECONDS);
	LLVMFuzzerTestOneInput(data, size);
	alarm(0);
	free(data);
}

/* Replay the files of a folder.  *path is the file being replayed, *count the number of files. */
static void
replay_folder(const char *folder, char *path, int *count)
{
	DIR		   *dir = opendir(folder);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
	{
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, MOST_PATH, "%s/%s", folder, entry->d_name);
		replay(path);
		(*count)++;
	}
	if (dir != NULL)
		closedir(dir);
}

int
main(int argc, char **argv)
{
	char	   *path = mmap(NULL, MOST_PATH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool		failed = false;

	/* A process replays; a fault ends that process, and this one says in which file. */
	for (int i = 1; i < argc && path != MAP_FAILED; i++)
	{
		int			status;
		pid_t		pid = fork();

		if (pid == 0)
		{
			int			count = 0;

			replay_folder(argv[i], path, &count);
			snprintf(path, MOST_PATH, "%d inputs of %s", count, argv[i]);
			exit(count == 0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			status = -1;
		failed |= status != 0;
		printf("%s %d - %s\n", status == 0 ? "ok" : "not ok", i, path);
	}
	printf("1..%d\n", argc - 1);
	return failed;
}
