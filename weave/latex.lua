-- The book as LaTeX, for XeLaTeX and the macros of book.latex.

local chunks = require 'latex_chunks'
local exhibits = require 'latex_results'
local links = require 'links'
local write = require 'latex_text'

local raw, raw_block, escape = write.raw, write.raw_block, write.escape

local latex = {}

local function show_link(state, link)
  local id = link.target:match '^#(.+)$'
  if not id then return nil end
  local facts = links.resolve(state.map.chapters, state.facts, id, link.attributes.at)
  if not facts then return {} end
  local label = facts.key .. ':' .. id
  local content = pandoc.List { raw('\\hyperref[' .. label .. ']{') }
  content:extend(links.keep_together(link.content))
  content:insert(raw('}\\weaveonpage{' .. label .. '}'))
  return content
end

local function show_header(state, header)
  local facts = state.facts
  header.attributes.number = nil
  local label = facts.key .. ':' .. header.identifier
  header.identifier = label
  if header.level > 1 then return header end
  local opening
  if facts.key == 'index' then
    opening = '\\weavefrontchapter{'
  else
    opening = '\\weavechapter{' .. facts.label .. '}{' .. facts.number .. '}{' .. facts.label:gsub(' ?' .. facts.number .. '$', '') .. '}{'
  end
  local content = pandoc.List { raw(opening) }
  content:extend(header.content)
  content:insert(raw('}{' .. label .. '}'))
  return pandoc.Plain(content)
end

local function within(environment, content)
  local blocks = pandoc.List { raw_block('\\begin{' .. environment .. '}') }
  blocks:extend(content)
  blocks:insert(raw_block('\\end{' .. environment .. '}'))
  return blocks
end

-- Begins the first paragraph with a word of its own.
local function lead(word, content)
  local mark = raw('\\weavelead{' .. word .. '}')
  if content[1] and (content[1].t == 'Para' or content[1].t == 'Plain') then
    content[1].content:insert(1, mark)
  else
    content:insert(1, pandoc.Plain { mark })
  end
  return content
end

-- A margin holds a short note; a long one, or one with code, goes between
-- the paragraphs.
local MARGIN_WORDS = 120

local function is_short(content)
  local short = true
  pandoc.Div(content):walk {
    CodeBlock = function() short = false end,
    Table = function() short = false end,
    RawBlock = function() short = false end,
  }
  local _, words = pandoc.utils.stringify(content):gsub('%S+', '')
  return short and words <= MARGIN_WORDS
end

local function show_div(state, div)
  local classes = div.classes
  if classes:includes 'weave-table' then return exhibits.table(state, div) end
  if classes:includes 'weave-figure' then return exhibits.figure(state, div) end
  if classes:includes 'aside' then
    return within(is_short(div.content) and 'weaveaside' or 'weaveinset', div.content)
  end
  if classes:includes 'answer' then return within('weaveanswer', lead('Answer.', div.content)) end
  if classes:includes 'hint' then return within('weavehint', lead('Hint.', div.content)) end
  for _, name in ipairs { 'ask', 'reading' } do
    if classes:includes(name) then return within('weave' .. name, div.content) end
  end
  if classes:includes 'contents' then return {} end -- the template has them
  return nil
end

-- Where a note in the margin cannot be set.
local function mark_inner(element)
  return element:walk {
    Span = function(span)
      if span.attributes.claim then
        span.attributes.inner = 'yes'
        return span
      end
    end,
  }
end

local function index_term(term)
  local function quote(text) return (escape(text):gsub('([!@|"])', '"%1')) end
  local main, part = term:match '^([^,]+),%s*(.+)$'
  if not main then return quote(term) end
  return quote(main) .. '!' .. quote(part)
end

local function show_string(string)
  local changed = write.symbols_in_text(string)
  if changed == string then return nil end
  local out, from = pandoc.List(), 1
  for first, macro, last in changed:gmatch '()(\\textsymbol%b{})()' do
    if first > from then out:insert(pandoc.Str(changed:sub(from, first - 1))) end
    out:insert(raw(macro))
    from = last
  end
  if from <= #changed then out:insert(pandoc.Str(changed:sub(from))) end
  return out
end

local function is_display(block)
  return block and block.t == 'Para' and #block.content == 1 and block.content[1].t == 'Math' and
    block.content[1].mathtype == 'DisplayMath'
end

local function is_set_apart(block)
  if block.t == 'RawBlock' then return not block.text:match 'weaveaside' end
  return block.t == 'CodeBlock' or block.t == 'Table'
end

-- A displayed formula belongs to the paragraph before it, and what goes on
-- after a formula, a chunk, a table or a figure is not indented.
local function join_paragraphs(blocks)
  local out, after_display = pandoc.List(), false
  for _, block in ipairs(blocks) do
    local last = out[#out]
    if is_display(block) and last and last.t == 'Para' then
      last.content:insert(pandoc.SoftBreak())
      last.content:extend(block.content)
      after_display = true
    else
      if block.t == 'Para' and last and (after_display or is_set_apart(last)) then
        block.content:insert(1, raw '\\noindent{}')
      end
      out:insert(block)
      after_display = is_display(block)
    end
  end
  return out
end

function latex.render(state, blocks)
  local doc = pandoc.Pandoc(blocks):walk {
    Note = mark_inner, Table = mark_inner,
    Div = function(div)
      local classes = div.classes
      if classes:includes 'weave-table' or classes:includes 'weave-figure' or classes:includes 'aside' then return mark_inner(div) end
    end,
  }
  doc = doc:walk {
    Str = function(element) return show_string(element.text) end,
    Code = function(element)
      if element.classes:includes 'noweb' then return chunks.prose_code(state, element) end
      if element.classes:includes 'cell' then return exhibits.cell(state, element) end
      return raw(write.code(element.text))
    end,
    Span = function(span)
      if span.attributes.claim then return exhibits.claim(state, span) end
      if span.classes:includes 'checked' then
        local content = pandoc.List(span.content)
        content:insert(raw '\\weavemark{}')
        return content
      end
      if span.classes:includes 'index-entry' then
        local content = pandoc.List { raw('\\index{' .. index_term(span.attributes.term) .. '}') }
        content:extend(span.content)
        return content
      end
    end,
    Link = function(link) return show_link(state, link) end,
    Header = function(header) return show_header(state, header) end,
    CodeBlock = function(block)
      if block.classes:includes 'chunk' then
        return raw_block(chunks.chunk(state, state.book.chunk[block.attributes.label]))
      end
    end,
    Div = function(div) return show_div(state, div) end,
  }
  return join_paragraphs(doc.blocks)
end

return latex
