/*
 * first.c
 *	  A library that starts AddressSanitizer before the constructors of all other libraries, because it
 *	  is linked with -z initfirst.
 *
 * Otherwise the sanitizer starts at the first malloc.  In a server with GnuTLS (from libldap), that is
 * in a constructor of libgpg-error, which calls bindtextdomain.  glibc then holds the lock of its
 * message catalogs, the sanitizer asks for a message, and the next bindtextdomain waits forever.
 */
extern void __asan_init(void);

__attribute__((constructor))
static void
start_sanitizer(void)
{
	__asan_init();
}
