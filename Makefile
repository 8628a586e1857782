# pg_lsm: build, install and test with PGXS.
#
#   make && make install          build against the server that pg_config names
#   tools/test.sh                 run all tests
MODULE_big = pg_lsm
EXTENSION = pg_lsm
DATA = sql/pg_lsm--0.1.0.sql
PGFILEDESC = "pg_lsm - write-optimised ordered index"

SOURCES = $(sort $(wildcard src/*.c src/*/*.c))
OBJS = $(SOURCES:.c=.o)

PG_CPPFLAGS = -I$(CURDIR)/src
PG_CFLAGS = -Wall -Wmissing-prototypes -Wno-declaration-after-statement

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Every object depends on every header: the tree is small.
$(OBJS): $(wildcard src/*/*.h)
