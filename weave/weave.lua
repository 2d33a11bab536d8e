-- The filter that makes pages of what noweb.lua read. The format says
-- which: HTML one page, LaTeX the whole book, plain text the map of the
-- book (which numbers and names each chapter holds).
--
--   WEAVE         what is read: see noweb.lua
--   WEAVE_STREAM  the stream of all chapters, if the reader got one only
--   WEAVE_MAP     the map of the book, for HTML
--   WEAVE_BIB     the references

local here = PANDOC_SCRIPT_FILE:match '^(.*)/[^/]*$' or '.'
package.path = here .. '/?.lua;' .. package.path

local contents = require 'html_contents'
local exhibits = require 'html_results'
local html = require 'html'
local html_chunks = require 'html_chunks'
local html_text = require 'html_text'
local latex = require 'latex'
local latex_chunks = require 'latex_chunks'
local latex_text = require 'latex_text'
local map = require 'map'
local problems = require 'problems'
local results = require 'results'
local stream = require 'stream'
local structure = require 'structure'

local FRONT = { key = 'index', path = os.getenv 'WEAVE_FRONT' or 'book.md', label = '', number = '' }

local function read_book()
  local book = stream.read(os.getenv 'WEAVE_STREAM' or PANDOC_STATE.input_files[1])
  results.find_programs(book)
  return book
end

-- ---- Checks that need no page ---------------------------------------------------

local function known_references()
  local keys = {}
  for key in (results.read_file(os.getenv 'WEAVE_BIB' or 'chapters/references.bib') or ''):gmatch '@%a+%s*{%s*([^%s,]+)' do
    keys[key] = true
  end
  return keys
end

-- Where a chapter cites: markdown.lua notes the lines as it reads, but in
-- the reader's Lua; here the chapter is scanned once more.
local function check_citations(blocks, facts, chapter)
  local known, lines = known_references(), nil
  pandoc.Pandoc(blocks):walk {
    Cite = function(cite)
      for _, citation in ipairs(cite.citations) do
        if not known[citation.id] then
          if not lines then
            require('markdown').of(chapter)
            lines = chapter.cited
          end
          problems.report(facts.path, lines[citation.id], 'no reference is called @' .. citation.id)
        end
      end
    end,
  }
end

-- The line of a chapter's code that makes a claim.
local function line_of_claim(book, claim)
  local quoted = '"' .. claim.name .. '"'
  for _, chunk in ipairs(book.chunks) do
    if chunk.roots[claim.program.name .. '.c'] then
      local recent = 0
      for _, line in ipairs(chunk.lines) do
        local text = ''
        for _, piece in ipairs(line) do text = text .. (piece.text or '') end
        if text:find('report_claim', 1, true) then recent = 3 end
        if recent > 0 and text:find(quoted, 1, true) then return chunk.chapter.path, line.line end
        recent = recent - 1
      end
    end
  end
  return claim.program.chapter.path, 1
end

-- Every claim that a program makes stands in some chapter.
local function check_all_claims_shown(book, all, programs)
  local shown = {}
  for _, facts in ipairs(all) do
    for _, entry in ipairs(facts.claims) do
      local claim = results.find_claim(facts, entry.target)
      if claim then shown[claim.program.name .. ' ' .. claim.target] = true end
    end
  end
  for _, program in ipairs(programs) do
    for _, claim in ipairs(results.all_claims(program)) do
      if not shown[program.name .. ' ' .. claim.target] then
        local path, line = line_of_claim(book, claim)
        problems.report(path, line, program.name .. ' makes the claim ' .. claim.target ..
          ', which no chapter shows: [A sentence.]{claim="' .. claim.target .. '"}')
      end
    end
  end
end

local function programs_of(chapter)
  local own = {}
  for _, program in ipairs(results.programs) do
    if program.chapter == chapter then table.insert(own, program) end
  end
  return own
end

-- ---- The map ---------------------------------------------------------------------

local function is_back(block) return block.t == 'Div' and block.classes:includes 'back' end

-- The chapters of a whole book, numbered: their blocks and their facts.
local function number_all(doc, book)
  local chapters = {}
  for _, div in ipairs(doc.blocks) do
    local chapter = book.chapters[div.attributes.key] or FRONT
    local blocks, facts = structure.number(div.content, chapter)
    table.insert(chapters, { blocks = blocks, facts = facts, chapter = chapter })
  end
  return chapters
end

local function plain_facts(facts)
  facts.title = facts.title and html_text.inlines(facts.title) or ''
  for _, section in ipairs(facts.sections) do section.title = html_text.inlines(section.title) end
  return facts
end

local function write_map(doc)
  local all = {}
  for _, chapter in ipairs(number_all(doc, read_book())) do table.insert(all, plain_facts(chapter.facts)) end
  problems.stop_if_any()
  return pandoc.Pandoc { pandoc.RawBlock('plain', map.write { chapters = all }) }
end

-- ---- Pages -----------------------------------------------------------------------

local function meta_html(text) return pandoc.MetaBlocks { pandoc.RawBlock('html', text) } end

local function set_neighbours(meta, state)
  local before, after = contents.neighbours(state)
  local function page(neighbour)
    return {
      href = neighbour.key .. '.html',
      label = neighbour.label and pandoc.MetaString(neighbour.label) or nil,
      title = pandoc.MetaInlines { pandoc.RawInline('html', neighbour.title) },
    }
  end
  if before then meta.before = page(before) end
  if after then meta.after = page(after) end
end

local function own_facts(state)
  for _, facts in ipairs(state.map.chapters) do
    if facts.key == state.key then return facts end
  end
  return { key = state.key, path = FRONT.path, ids = {}, sections = {}, claims = {} }
end

local function has_citations(blocks)
  local found = false
  pandoc.Pandoc(blocks):walk { Cite = function() found = true end }
  return found
end

local function chapter_page(state, doc)
  local chapter = state.book.chapters[state.key] or FRONT
  local content = state.key == 'index' and doc.blocks or doc.blocks[1].content
  local blocks, facts = structure.number(content, chapter)
  state.facts = facts
  if chapter ~= FRONT then
    check_citations(blocks, facts, chapter)
    check_all_claims_shown(state.book, state.map.chapters, programs_of(chapter))
  end
  local cites = has_citations(blocks)
  blocks = html.render(state, blocks)
  problems.stop_if_any()
  blocks:insert(pandoc.RawBlock('html', exhibits.checked(state)))
  if cites then
    blocks:insert(pandoc.RawBlock('html', '<h2 class="references-title" id="references">References</h2>'))
    blocks:insert(pandoc.Div({}, pandoc.Attr('refs')))
  end
  local listed = own_facts(state)
  if facts.title then
    doc.meta.heading = pandoc.MetaInlines { pandoc.RawInline('html', listed.title) }
    doc.meta.headingid = facts.id
    doc.meta.pagetitle = pandoc.MetaString(chapter.label .. ': ' .. pandoc.utils.stringify(facts.title))
  end
  if chapter ~= FRONT then doc.meta.label = pandoc.MetaString(chapter.label) end
  return blocks
end

-- The contents stand where book.md asks for them, else before its first
-- heading.
local function put_contents(state, blocks)
  if state.has_contents then return blocks end
  local at = #blocks + 1
  for index, block in ipairs(blocks) do
    if block.t == 'Header' then
      at = index
      break
    end
  end
  table.insert(blocks, at, pandoc.RawBlock('html', contents.full(state)))
  return blocks
end

local INDEXES = {
  chunks = function(state) return contents.chunk_index(state) end,
  identifiers = function(state) return contents.identifier_index(state) end,
  subjects = function(state) return contents.subject_index(state) end,
}

local function index_page(state, doc)
  for _, page in ipairs(contents.back_pages) do
    if page.key == state.key then
      doc.meta.heading = pandoc.MetaString('Index of ' .. page.title:lower())
      doc.meta.headingid = page.key
      doc.meta.pagetitle = doc.meta.heading
    end
  end
  return { pandoc.RawBlock('html', INDEXES[state.key](state)) }
end

local function write_page(doc)
  local state = {
    book = read_book(), key = os.getenv 'WEAVE', map = map.read(os.getenv 'WEAVE_MAP' or 'build/book.map'),
    title = pandoc.utils.stringify(doc.meta.title or ''),
  }
  local blocks
  if INDEXES[state.key] then
    blocks = index_page(state, doc)
  else
    blocks = chapter_page(state, doc)
    if state.key == 'index' then
      blocks = put_contents(state, blocks)
      doc.meta.front = true
      doc.meta.pagetitle = pandoc.MetaString(state.title)
    end
    if #state.foreign > 0 then doc.meta.templates = meta_html(html_chunks.templates(state)) end
  end
  doc.meta.sidebar = meta_html(contents.sidebar(state))
  set_neighbours(doc.meta, state)
  return pandoc.Pandoc(blocks, doc.meta)
end

-- ---- The printed book ---------------------------------------------------------------

local function write_book(doc)
  local book = read_book()
  local chapters = number_all(doc, book)
  local all = {}
  for index, chapter in ipairs(chapters) do all[index] = chapter.facts end
  check_all_claims_shown(book, all, results.programs)
  local front, main, back = pandoc.List(), pandoc.List(), pandoc.List()
  for _, entry in ipairs(chapters) do
    local state = { book = book, facts = entry.facts, map = { chapters = all } }
    if entry.chapter ~= FRONT then check_citations(entry.blocks, entry.facts, entry.chapter) end
    local blocks = latex.render(state, entry.blocks)
    for _, block in ipairs(blocks) do
      if entry.chapter == FRONT then
        (is_back(block) and back or front):insert(block)
      else
        main:insert(block)
      end
    end
  end
  problems.stop_if_any()
  local blocks = pandoc.List { latex_text.raw_block '\\weavefront' }
  blocks:extend(front)
  blocks:insert(latex_text.raw_block '\\weavemain')
  blocks:extend(main)
  blocks:insert(latex_text.raw_block '\\weaveback')
  blocks:extend(back)
  blocks:insert(latex_text.raw_block '\\weavebackchapter{References}{references}')
  blocks:insert(pandoc.Div({}, pandoc.Attr('refs')))
  blocks:insert(latex_text.raw_block('\\weavebackchapter{Index of chunks}{chunks}\n' .. latex_chunks.chunk_index(book)))
  blocks:insert(latex_text.raw_block('\\weavebackchapter{Index of identifiers}{identifiers}\n' .. latex_chunks.identifier_index(book)))
  return pandoc.Pandoc(blocks, doc.meta)
end

function Pandoc(doc)
  if FORMAT:match 'html' then return write_page(doc) end
  if FORMAT:match 'latex' then return write_book(doc) end
  return write_map(doc)
end
