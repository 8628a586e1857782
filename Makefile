# pg_lsm: build, install and test with PGXS.
#
#   make && make install          build against the server that pg_config names
#   make dist                     pg_lsm-VERSION.zip of the last commit, for PGXN
#   make check                    build and test a copy of the tree in .check/: unit, regress and isolation
#   tools/test.sh                 run all tests
MODULE_big = pg_lsm
EXTENSION = pg_lsm
DATA = sql/pg_lsm--0.2.0.sql sql/pg_lsm--0.1.0--0.2.0.sql
PGFILEDESC = "pg_lsm - write-optimised ordered index"

SOURCES = $(sort $(wildcard src/*.c src/*/*.c))
OBJS = $(SOURCES:.c=.o)

PG_CPPFLAGS = -I$(CURDIR)/src
PG_CFLAGS = -Wall -Wmissing-prototypes -Wno-declaration-after-statement -MMD -MP
EXTRA_CLEAN = $(OBJS:.o=.d)

# Bitcode is for functions that queries call in expressions. An access method has none.
override with_llvm = no

PG_CONFIG ?= pg_config

# PGXS has a "check" of its own, which only fails. Without PGXS, ours is the only one.
ifneq ($(filter check,$(MAKECMDGOALS)),)
check:
	tools/test.sh --incremental unit quick

OTHERS = $(filter-out check,$(MAKECMDGOALS))
ifneq ($(OTHERS),)
$(OTHERS):
	$(MAKE) $@
endif
.PHONY: $(MAKECMDGOALS)
else
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

dist: VERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" pg_lsm.control)
dist:
	tools/check_versions.py
	git archive --format=zip --prefix=pg_lsm-$(VERSION)/ --output=pg_lsm-$(VERSION).zip HEAD
.PHONY: dist

-include $(wildcard src/*.d src/*/*.d)
# Where the compiler has not written down which headers an object includes, the object depends on all of them.
$(filter-out $(patsubst %.d,%.o,$(wildcard src/*.d src/*/*.d)),$(OBJS)): $(wildcard src/*/*.h)
endif
