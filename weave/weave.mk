# The site and the printed book, from the stream of noweb's filters and
# from what the chapters' programs printed.

BOOK         := $(BUILD)/book
BOOK_MAP     := $(BUILD)/book.map
FRONT        := $(wildcard book.md)
REFERENCES   := $(wildcard chapters/references.bib)
CHAPTER_KEYS := $(CHAPTERS:chapters/%.nw=%)
INDEX_KEYS   := chunks identifiers subjects
PAGES        := $(patsubst %,$(BOOK)/%.html,index $(CHAPTER_KEYS) $(INDEX_KEYS))
WOVEN_FROM   := $(BUILD)/book.stream $(FRONT) weave/weave $(wildcard weave/*.lua)
WEAVE        := WEAVE_OUT=$(BUILD)/out WEAVE_MAP=$(BOOK_MAP) weave/weave

.PHONY: html pdf
html: $(PAGES) $(BOOK)/style.css $(BOOK)/fonts/.done $(BUILD)/pages
pdf: $(BUILD)/attention.pdf

$(BOOK_MAP): $(WOVEN_FROM)
	@$(WEAVE) map $(BUILD)/book.stream $@

$(PAGES): $(BOOK)/%.html: $(WOVEN_FROM) $(BOOK_MAP) $(BUILD)/out/.done $(REFERENCES) weave/page.html weave/preview.js
	$(call say,weaving $@)$(WEAVE) page $* $(BUILD)/book.stream $@

# A page whose chapter is gone goes too.
$(BUILD)/pages: $(CHAPTERS) $(PAGES)
	@for page in $(BOOK)/*.html; do \
	  case ' $(PAGES) ' in *" $$page "*) ;; *) rm -f "$$page" ;; esac; \
	done
	@touch $@

$(BOOK)/style.css: weave/style.css
	@mkdir -p $(@D)
	@cp $< $@

$(BOOK)/fonts/.done: weave/fonts
	@weave/fonts $(@D)
	@touch $@

$(BUILD)/attention.tex: $(WOVEN_FROM) $(BUILD)/out/.done $(REFERENCES) weave/book.latex
	$(call say,weaving $@)$(WEAVE) book $(BUILD)/book.stream $@

$(BUILD)/attention.pdf: $(BUILD)/attention.tex weave/print weave/index.ist
	$(call say,printing $@)weave/print $< $@
