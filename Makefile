# Attention in Seven Days: every job of the book. `make help` lists them.
#
# chapters/*.nw are the only source. noweb tangles them into tangled/; the
# C there becomes a library and one program per chapter in build/; the
# programs print the tables that pandoc weaves with the chapters into
# build/book/ and build/attention.pdf.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := book

CHAPTERS := $(sort $(wildcard chapters/*.nw))
BUILD    := build
TANGLED  := tangled
VERSION  := 1.0.0
PREFIX   ?= /usr/local
ARGS     ?=

# One line per thing made; V=1 shows the commands, make -s nothing.
SILENT := $(findstring s,$(firstword -$(MAKEFLAGS)))
say    = $(if $(V),,@$(if $(SILENT),:,echo '$(1)');)

# ---- What to compile with ---------------------------------------------------

# -march=native: the programs run where they are built. A library for other
# machines is built with ARCH=.
ARCH     ?= -march=native
CFLAGS   ?= -O3 -g $(ARCH)
WARNINGS ?= -Wall -Wextra -Wpedantic -Wshadow
ifdef CI
WARNINGS += -Werror
endif
STANDARD := -std=c11 -D_POSIX_C_SOURCE=200809L -fopenmp -fno-math-errno -fno-trapping-math -fPIC

# Any library with the CBLAS interface serves: BLAS=blis, or BLAS_CFLAGS and
# BLAS_LIBS by hand.
BLAS     ?= openblas
ifneq ($(shell command -v brew 2>/dev/null),)
export PKG_CONFIG_PATH := $(shell brew --prefix openblas)/lib/pkgconfig:$(PKG_CONFIG_PATH)
endif

# ---- What a job needs, asked before any work starts ---------------------------

GOALS    := $(or $(MAKECMDGOALS),book)
QUIET    := help clean setup
WORK     := $(filter-out $(QUIET),$(GOALS))

# As many jobs at once as there are processors, unless -j says how many; but
# the days that are asked for by name are run one after the other.
ifeq ($(MAKELEVEL)$(filter chapter-% attention,$(GOALS)),0)
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
endif

ifneq ($(filter setup,$(GOALS)),)
# Nothing may be asked of tools that setup is about to install, so the other
# goals of the same command run in a make of their own.
ifneq ($(WORK),)
$(WORK): setup
	@$(MAKE) --no-print-directory $@
endif
else ifneq ($(WORK),)

needs = $(shell sed '/^\#/d' tools/packages | awk '{ n = split("$(1)", job, " "); for (i = 1; i <= n; i++) if ($$NF == job[i]) print $$1 }')
NEEDS := $(call needs,run)
ifneq ($(filter book all html pdf,$(WORK)),)
NEEDS += $(call needs,book)
endif
ifneq ($(filter book all pdf,$(WORK)),)
NEEDS += $(call needs,pdf)
endif
ifneq ($(filter check check-c check-book sanitize valgrind,$(WORK)),)
NEEDS += $(call needs,book pdf check)
endif
ifneq ($(BLAS)$(BLAS_LIBS),openblas)
NEEDS := $(filter-out pkg-config:openblas,$(NEEDS)) $(if $(BLAS_LIBS),,pkg-config:$(BLAS))
endif
ifeq ($(shell tools/need $(NEEDS) >&2 && echo ready),)
$(error some tools are missing: see above)
endif

BLAS_CFLAGS ?= $(shell pkg-config --cflags $(BLAS))
BLAS_LIBS   ?= $(shell pkg-config --libs $(BLAS))
BLAS_CFLAGS := $(BLAS_CFLAGS)
BLAS_LIBS   := $(BLAS_LIBS)
JSON_CFLAGS := $(shell pkg-config --cflags libcjson)
JSON_LIBS   := $(shell pkg-config --libs libcjson)
NOWEB       := $(shell tools/noweb-library)

# ---- Tangle -------------------------------------------------------------------

# tangled/roots lists the files that noweb found in the chapters. make reads
# it through build/roots.mk, remakes it when a chapter changed, and starts
# over when the list did.
TANGLE := tools/tangle tools/refresh tools/check-chunks.awk tools/line-directives.awk

$(TANGLED)/.tangled: $(CHAPTERS) $(TANGLE)
	@tools/tangle $(TANGLED) $(CHAPTERS)
	@touch $@
$(TANGLED)/roots: $(TANGLED)/.tangled ; @:
$(BUILD)/roots.mk: $(TANGLED)/roots
	@mkdir -p $(@D)
	@{ printf 'ROOTS :='; tr '\n' ' ' | sed 's/^/ /'; echo; } <$< >$@
include $(BUILD)/roots.mk

TANGLED_C := $(filter %.c,$(ROOTS))
$(addprefix $(TANGLED)/,$(ROOTS)): $(TANGLED)/.tangled ; @:

# Every chapter-NN.c is a program, and so is attention.c; the companions are
# linked into the programs; the rest is the library.
PROGRAMS := $(basename $(filter chapter-%.c attention.c,$(TANGLED_C)))
COMPANIONS := $(filter report.c tasks.c models.c,$(TANGLED_C))
LIBRARY  := $(filter-out chapter-%.c attention.c $(COMPANIONS),$(TANGLED_C))

# ---- Compile ------------------------------------------------------------------

OBJECTS  := $(LIBRARY:%.c=$(BUILD)/obj/%.o)
STATIC   := $(BUILD)/lib/libattention.a
SONAME   := libattention.so.$(firstword $(subst ., ,$(VERSION)))
SHARED   := $(BUILD)/lib/libattention.so
LINK_LIBS := $(BLAS_LIBS) $(JSON_LIBS) -lm

# Compile again when the compiler or a flag is another one.
COMPILE := $(CC) $(STANDARD) $(CPPFLAGS) $(CFLAGS) $(WARNINGS) -I$(TANGLED) $(BLAS_CFLAGS) $(JSON_CFLAGS)
FLAGS   := $(BUILD)/flags
KEEP_FLAGS := mkdir -p $(BUILD); printf '%s\n' '$(subst ','\'',$(COMPILE) $(LDFLAGS) $(LINK_LIBS))' >$(FLAGS).now; \
  cmp -s $(FLAGS).now $(FLAGS) || mv $(FLAGS).now $(FLAGS); rm -f $(FLAGS).now
# At once: a target that waits for another is overtaken by those behind it.
$(shell $(KEEP_FLAGS))
$(FLAGS): ; @$(KEEP_FLAGS)

$(BUILD)/obj/%.o: $(TANGLED)/%.c $(FLAGS)
	@mkdir -p $(@D)
	$(call say,compiling $<)$(COMPILE) -MMD -MP -c -o $@ $<

$(STATIC): $(OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,packing $@)$(AR) rcs $@ $(OBJECTS)

$(SHARED): $(OBJECTS)
	@mkdir -p $(@D)
	$(call say,linking $@)$(CC) -shared -fopenmp -Wl,-soname,$(SONAME) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LINK_LIBS)

$(BUILD)/bin/%: $(BUILD)/obj/%.o $(COMPANIONS:%.c=$(BUILD)/obj/%.o) $(STATIC)
	@mkdir -p $(@D)
	$(call say,linking $@)$(CC) -fopenmp $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LINK_LIBS)

-include $(wildcard $(BUILD)/obj/*.d $(BUILD)/test/*.d $(BUILD)/bench/*.d)

# ---- The prose, for a model to learn from ---------------------------------------

# Day 7's program reads it from here whatever BUILD is.
PROSE := build/prose.txt
$(PROSE): $(CHAPTERS) tools/prose.awk
	@mkdir -p $(@D)
	@$(NOWEB)/markup $(CHAPTERS) >$@.1
	@LC_ALL=C awk -f tools/prose.awk $@.1 >$@.2
	@rm $@.1
	@mv $@.2 $@

.PHONY: prose
prose: $(PROSE) ; @:

# ---- Run ----------------------------------------------------------------------

.PHONY: $(PROGRAMS)
$(PROGRAMS): %: $(BUILD)/bin/% $(PROSE)
	@$< $(ARGS)

# The book runs every program again: no table in it is older than the build.
# The worked examples of attention.c are in the chapters already.
# The tests take it as it stands. The longest come first, lest one of them
# be left over at the end.
AGAIN := $(if $(filter book all html pdf,$(GOALS)),FORCE)
LONG := chapter-05 chapter-07 chapter-06 chapter-01
RUNS := $(patsubst %,$(BUILD)/out/%/.done,$(foreach program,$(LONG),$(filter $(program),$(PROGRAMS))) $(filter-out attention $(LONG),$(PROGRAMS)))
$(RUNS): $(BUILD)/out/%/.done: $(BUILD)/bin/% $(PROSE) weave/figure.gp $(AGAIN)
	$(call say,running $*)tools/run $< $(@D)

$(BUILD)/out/.done: $(RUNS)
	@[ -f $@ ] && [ -z "$$(find $(BUILD)/out -mindepth 2 -name .done -newer $@)" ] || touch $@

# ---- Weave --------------------------------------------------------------------

# One filter at a time, since a pipe would hide the status of all but the
# last. Of what noweb says, the weave hears some words only.
$(BUILD)/book.stream: $(TANGLED)/.tangled
	@mkdir -p $(@D)
	@$(NOWEB)/markup $(CHAPTERS) >$@.1
	@$(NOWEB)/autodefs.c <$@.1 >$@.2
	@$(NOWEB)/finduses <$@.2 >$@.1
	@$(NOWEB)/noidx <$@.1 >$@.2
	@LC_ALL=C grep -E '^@(file|begin|end|text|nl|defn|use|quote|endquote|xref label|index (use|defn|nl))( |$$)' <$@.2 >$@.1
	@rm $@.2
	@mv $@.1 $@

-include weave/weave.mk

.PHONY: book all tangle
tangle: $(TANGLED)/roots ; @:
book: pdf html $(PROGRAMS:%=$(BUILD)/bin/%)
all: book $(STATIC) $(SHARED)

# ---- Test ---------------------------------------------------------------------

# Each tests/check_*.c is a program of Check's; its first comment may say what
# else it links: /* link: -Wl,--wrap=malloc */
CHECKS     := $(patsubst tests/%.c,%,$(sort $(wildcard tests/check_*.c)))
BOOK_TESTS := $(patsubst tests/%.sh,%,$(sort $(wildcard tests/test_*.sh)))

$(BUILD)/test/%: tests/%.c $(COMPANIONS:%.c=$(BUILD)/obj/%.o) $(STATIC) $(FLAGS) $(wildcard tests/*.h)
	@mkdir -p $(@D)
	$(call say,compiling $<)$(COMPILE) -Itests -MMD -MP $(LDFLAGS) $$(pkg-config --cflags check) -o $@ $< $(COMPANIONS:%.c=$(BUILD)/obj/%.o) $(STATIC) \
	  $$(sed -n 's,.*link: \(.*\) \*/,\1,p' $<) $$(pkg-config --libs check) $(LINK_LIBS)

# Tests run side by side, so that each one's words are kept together.
kept = >$(BUILD)/test/$*.log 2>&1; status=$$?; cat $(BUILD)/test/$*.log; exit $$status

.PHONY: check check-c check-book $(CHECKS:%=run-%) $(BOOK_TESTS:%=run-%)
$(CHECKS:%=run-%): run-%: $(BUILD)/test/% $(PROGRAMS:%=$(BUILD)/bin/%)
	@BUILD=$(BUILD) $(RUN_UNDER) $< $(kept)
check-c: $(CHECKS:%=run-%)

# The tests of the build and of the book work on the book as it stands.
$(BOOK_TESTS:%=run-%): run-%: tests/%.sh book
	@mkdir -p $(BUILD)/test
	@{ echo $<; $<; } $(kept)
check-book: $(BOOK_TESTS:%=run-%)
check: check-c check-book

.PHONY: sanitize valgrind golden lint
sanitize: $(PROSE)
	@$(MAKE) --no-print-directory check-c BUILD=build/sanitize \
	  CFLAGS='-O1 -g $(ARCH) -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'
	@for program in $(PROGRAMS); do echo "$$program under the sanitizers"; \
	  build/sanitize/bin/$$program >/dev/null || exit 1; done

valgrind:
	@$(MAKE) --no-print-directory check-c BUILD=build/valgrind ARCH='-march=x86-64-v2' OMP_NUM_THREADS=1 CK_FORK=no \
	  RUN_UNDER='valgrind -q --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite'

PYTHON ?= /usr/bin/python3
golden:
	@for script in tests/golden/*.py; do echo "$$script"; $(PYTHON) $$script || exit 1; done

lint:
	@tools/lint

.PHONY: bench
bench: $(BUILD)/bench/book
	@BUILD=$(BUILD) PYTHON=$(PYTHON) bench/run

$(BUILD)/bench/%: bench/%.c $(COMPANIONS:%.c=$(BUILD)/obj/%.o) $(STATIC) $(FLAGS)
	@mkdir -p $(@D)
	$(call say,compiling $<)$(COMPILE) -MMD -MP $(LDFLAGS) -o $@ $< $(COMPANIONS:%.c=$(BUILD)/obj/%.o) $(STATIC) $(LINK_LIBS)

# ---- Ship ---------------------------------------------------------------------

.PHONY: install uninstall dist
INTO := $(DESTDIR)$(PREFIX)
# Users of the header have no chapters to be sent to.
install: $(STATIC) $(SHARED) $(TANGLED)/attention.h
	install -d '$(INTO)/include' '$(INTO)/lib/pkgconfig'
	sed -e '1d' -e '/^ *#line /d' $(TANGLED)/attention.h >'$(INTO)/include/attention.h'
	chmod 644 '$(INTO)/include/attention.h'
	install -m 644 $(STATIC) '$(INTO)/lib/'
	install -m 755 $(SHARED) '$(INTO)/lib/libattention.so.$(VERSION)'
	ln -sf libattention.so.$(VERSION) '$(INTO)/lib/$(SONAME)'
	ln -sf $(SONAME) '$(INTO)/lib/libattention.so'
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	  'Name: attention' 'Description: Attention, its gradients and the layers around it' \
	  'Version: $(VERSION)' 'Libs: -L$${libdir} -lattention' \
	  'Libs.private: -fopenmp $(LINK_LIBS)' 'Cflags: -I$${includedir}' \
	  >'$(INTO)/lib/pkgconfig/attention.pc'

uninstall:
	rm -f '$(INTO)'/include/attention.h '$(INTO)'/lib/libattention.* '$(INTO)'/lib/pkgconfig/attention.pc

dist: $(TANGLED)/.tangled $(PROSE)
	@tools/dist $(VERSION) $(BUILD) $(PROSE) '$(PROGRAMS)' '$(COMPANIONS)' $(CHAPTERS)

endif

# ---- The jobs that need nothing -----------------------------------------------

.PHONY: setup clean help FORCE
setup:
	@tools/setup

clean:
	rm -rf build/* $(TANGLED)/* $(TANGLED)/.tangled $(TANGLED)/.done

help:
	@sed -n 's/^#: //p' Makefile

#: make, make book     the site build/book/index.html and build/attention.pdf
#: make html, pdf      one of the two
#: make chapter-02     run a day's program; ARGS="one-query steps" picks sections
#: make prose          the book's text alone, for Day 7 to learn from
#: make tangle         the C of the chapters, into tangled/
#: make check          all tests: the library, the build, the book
#: make sanitize       the library's tests and all programs under sanitizers
#: make valgrind       the library's tests under valgrind
#: make bench          this book beside PyTorch, in one run
#: make install        library, header and pkg-config file (PREFIX, DESTDIR)
#: make dist           a tarball of plain C that needs a compiler and a BLAS
#: make golden         the golden numbers anew from PyTorch and NumPy
#: make lint           layout of the C, of the scripts, and clang-tidy
#: make setup          install what is missing (apt, dnf, brew)
#: make clean          remove everything that was made
FORCE:
