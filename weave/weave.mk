# The pages of the book and the printed book, from the stream of noweb's
# filters and from what the chapters' programs printed.

BOOK        := $(BUILD)/book
BOOK_MAP    := $(BUILD)/book.map
FRONT       := $(wildcard book.md)
REFERENCES  := $(wildcard chapters/references.bib)

WEAVE_LUA   := $(wildcard weave/*.lua)
CHAPTER_KEYS := $(CHAPTERS:chapters/%.nw=%)
INDEX_KEYS  := chunks identifiers subjects
PAGES       := $(patsubst %,$(BOOK)/%.html,index $(CHAPTER_KEYS) $(INDEX_KEYS))
SITE_FILES  := $(BOOK)/style.css $(BOOK)/fonts/.done

WEAVE_IN    := $(BUILD)/book.stream $(WEAVE_LUA) $(FRONT)
WEAVE_ENV    = WEAVE_OUT=$(BUILD)/out WEAVE_MAP=$(BOOK_MAP) WEAVE_FRONT=$(or $(FRONT),book.md) \
  WEAVE_BIB=$(or $(REFERENCES),/dev/null)
PANDOC_WEAVE = $(WEAVE_ENV) WEAVE=$(1) pandoc --fail-if-warnings -f weave/noweb.lua --lua-filter weave/weave.lua \
  $(if $(REFERENCES),--bibliography $(REFERENCES)) $(BUILD)/book.stream

.PHONY: html pdf
html: $(PAGES) $(SITE_FILES)
pdf: $(BUILD)/attention.pdf

# Everything is written beside its place and moved there when it is whole;
# an older one goes first, so that a failure leaves none.
$(BOOK_MAP): $(WEAVE_IN)
	@rm -f $@
	@$(call PANDOC_WEAVE,book) -t plain --wrap=none -o $@.part
	@mv $@.part $@

$(PAGES): $(BOOK)/%.html: $(WEAVE_IN) $(BOOK_MAP) $(BUILD)/out/.done $(REFERENCES) weave/page.html weave/preview.js
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,weaving $@)$(call PANDOC_WEAVE,$*) -t html5 --mathml --citeproc --metadata link-citations=true \
	  --wrap=preserve --template weave/page.html -o $@.part
	@mv $@.part $@

$(BOOK)/style.css: weave/style.css
	@mkdir -p $(@D)
	@cp $< $@

$(BOOK)/fonts/.done: weave/fonts
	@weave/fonts $(@D)
	@touch $@

$(BUILD)/attention.tex: $(WEAVE_IN) $(BUILD)/out/.done $(REFERENCES) weave/book.latex
	@rm -f $@
	$(call say,weaving $@)$(call PANDOC_WEAVE,book) -t latex --citeproc --metadata link-citations=true \
	  --top-level-division=chapter --template weave/book.latex -o $@.part
	@mv $@.part $@

$(BUILD)/attention.pdf: $(BUILD)/attention.tex weave/print weave/index.ist
	@rm -f $@
	$(call say,printing $@)weave/print $< $@
