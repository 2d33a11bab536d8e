-- The text of a chapter as HTML.
--
-- state.book   what noweb knows        state.map    the map of the book
-- state.key    the page               state.facts  the numbers of its chapter

local chunks = require 'html_chunks'
local contents = require 'html_contents'
local exhibits = require 'html_results'
local links = require 'links'
local problems = require 'problems'
local write = require 'html_text'

local raw, raw_block = write.raw, write.raw_block
local html = {}

local function show_link(state, link)
  local id = link.target:match '^#(.+)$'
  if not id then return nil end
  local facts = links.resolve(state.map.chapters, state.facts, id, link.attributes.at)
  if not facts then return {} end
  link.target = links.href(state, facts, id)
  link.content = links.keep_together(link.content)
  link.attributes.at = nil
  return link
end

local function show_header(state, header)
  if header.level == 1 and state.key ~= 'index' then return {} end -- the template has it
  local number = header.attributes.number
  header.attributes.number = nil
  local content = pandoc.List()
  if number then content:insert(raw('<span class="number">' .. number .. '</span> ')) end
  content:extend(header.content)
  content:insert(raw('<a class="self" href="#' .. header.identifier .. '" aria-hidden="true" tabindex="-1">#</a>'))
  header.content = content
  if state.key == 'index' then header.level = header.level + 1 end
  return header
end

local function fold(summary, class, content)
  local blocks = pandoc.List { raw_block('<details class="' .. class .. '"><summary>' .. summary .. '</summary>') }
  blocks:extend(content)
  blocks:insert(raw_block '</details>')
  return blocks
end

local function show_div(state, div)
  if div.classes:includes 'weave-table' then return exhibits.table(state, div) end
  if div.classes:includes 'weave-figure' then return exhibits.figure(state, div) end
  if div.classes:includes 'answer' then return fold('Answer', 'answer', div.content) end
  if div.classes:includes 'hint' then return fold('Hint', 'hint', div.content) end
  if div.classes:includes 'contents' then
    state.has_contents = true
    return raw_block(contents.full(state))
  end
end

local function show_span(state, span)
  if span.attributes.claim then return exhibits.claim(state, span) end
  if span.classes:includes 'checked' then -- what a checked sentence looks like
    local content = pandoc.List(span.content)
    content:insert(raw '<span class="check">✓</span>')
    return pandoc.Span(content, pandoc.Attr('', { 'claim' }))
  end
  if span.classes:includes 'index-entry' then
    return pandoc.Span(span.content, pandoc.Attr(span.identifier, { 'index-entry' }))
  end
end

local function show_code(state, element)
  if element.classes:includes 'noweb' then return chunks.prose_code(state, element) end
  if element.classes:includes 'cell' then return exhibits.cell(state, element) end
end

local function show_code_block(state, block)
  if not block.classes:includes 'chunk' then return nil end
  return raw_block(chunks.chunk(state, state.book.chunk[block.attributes.label]))
end

local function show_table_of_prose(block)
  return { raw_block '<div class="scroll prose-table" tabindex="0">', block, raw_block '</div>' }
end

-- The line of a chapter on which a formula begins.
local function line_of_formula(state, formula)
  local start = formula:match '^%s*([^\n]*)'
  local chapter = state.book.chapters[state.key]
  for _, part in ipairs(chapter and chapter.parts or {}) do
    for _, line in ipairs(part.kind == 'docs' and part.lines or {}) do
      if line.text:find(start, 1, true) then return line.line end
    end
  end
end

-- Brackets in MathML grow by themselves; pandoc 2 knows no \Bigl.
local function show_math(state, math)
  local simpler = pandoc.Math(math.mathtype, (math.text:gsub('\\[bB]igg?[lrm]?%f[%A]%s*', '')))
  if not write.inlines({ simpler }):find('<math', 1, true) then
    problems.report(state.facts.path, line_of_formula(state, math.text),
      'pandoc makes no MathML of $' .. math.text:gsub('%s+', ' ') .. '$')
  end
  return simpler
end

-- The blocks of a chapter as they stand on its page. Leaves in state what
-- the page needs besides: checked (its claims), foreign (chunks of other
-- pages that it refers to).
function html.render(state, blocks)
  state.checked, state.foreign = {}, {}
  local doc = pandoc.Pandoc(blocks):walk {
    Code = function(element) return show_code(state, element) end,
    Span = function(span) return show_span(state, span) end,
    Link = function(link) return show_link(state, link) end,
    Math = function(math) return show_math(state, math) end,
    Header = function(header) return show_header(state, header) end,
    CodeBlock = function(block) return show_code_block(state, block) end,
    Table = show_table_of_prose,
    Div = function(div) return show_div(state, div) end,
  }
  return doc.blocks
end

return html
