-- The book as LaTeX, for XeLaTeX and the macros of book.latex.

local code = require 'code'
local links = require 'links'
local problems = require 'problems'
local results = require 'results'
local stream = require 'stream'
local html = require 'html'

local latex = {}

local ESCAPES = {
  ['\\'] = '\\textbackslash{}', ['{'] = '\\{', ['}'] = '\\}', ['_'] = '\\_', ['#'] = '\\#', ['&'] = '\\&',
  ['%'] = '\\%', ['$'] = '\\$', ['^'] = '\\textasciicircum{}', ['~'] = '\\textasciitilde{}',
  ['<'] = '\\textless{}', ['>'] = '\\textgreater{}', ["'"] = '\\textquotesingle{}', ['-'] = '{-}', ['`'] = '\\textasciigrave{}',
}

local function raw(text) return pandoc.RawInline('latex', text) end
local function raw_block(text) return pandoc.RawBlock('latex', text) end

-- The text face has the letters of Europe and a printer's marks; every
-- other sign comes from the mathematical face.
local PRINTERS_MARKS = '‐‑–—‘’‚“”„†‡•…‰‹›⁄€™−'
local function is_in_text_face(codepoint)
  return codepoint < 0x180 or PRINTERS_MARKS:find(utf8.char(codepoint), 1, true) ~= nil
end

local function with_symbols(text, macro, is_known)
  return (text:gsub('[\xC2-\xF4][\x80-\xBF]+', function(sign)
    if is_known(utf8.codepoint(sign)) then return nil end
    return macro .. '{' .. sign .. '}'
  end))
end

local function symbols_in_text(text) return with_symbols(text, '\\textsymbol', is_in_text_face) end
local function symbols_in_code(text)
  return with_symbols(text, '\\codesymbol', function(codepoint) return codepoint < 0x100 end)
end

local function escape_code(text)
  return symbols_in_code((text:gsub('[\\{}_#&%%$^~<>\'`-]', ESCAPES)))
end

local function escape(text)
  text = text:gsub('[\\{}_#&%%$^~]', ESCAPES)
  return symbols_in_text(text)
end

-- Long names may break after an underscore.
local function breakable(text)
  return (text:gsub('\\_(%w)', '\\_\\allowbreak{}%1'):gsub('([/,])(%S)', '%1\\allowbreak{}%2'))
end

local function inline_code(text) return '\\texttt{' .. breakable(escape_code(text)) .. '}' end

-- ---- Chunks -------------------------------------------------------------------

local function name_latex(name)
  local out, from = {}, 1
  while true do
    local first, last, inner = name:find('%[%[(.-)%]%]', from)
    if not first then break end
    table.insert(out, escape(name:sub(from, first - 1)) .. '\\texttt{\\upshape ' .. escape_code(inner) .. '}')
    from = last + 1
  end
  table.insert(out, escape(name:sub(from)))
  return table.concat(out)
end

-- No hyphen in a label: inside a listing it would be an active character.
local function label_of(chunk) return 'chunk:' .. chunk.number end

local function labels(chunks)
  local out = {}
  for index, chunk in ipairs(chunks) do out[index] = label_of(chunk) end
  return table.concat(out, ',')
end

local function reference(state, name)
  local first = state.book.names[name].definitions[1]
  if not first then return '\\weavenamed{' .. name_latex(name) .. '}' end
  return '\\weaveuse{' .. label_of(first) .. '}{' .. name_latex(name) .. '}'
end

local function code_latex(state, chunk)
  local lines = code.lines(chunk, 'latex', function(piece, quiet)
    if piece.kind == 'use' then return reference(state, piece.name) end
    local text = piece.text:gsub('_', '\\_')
    if quiet or piece.definition == chunk then return text end
    return '\\weaveid{' .. label_of(piece.definition) .. '}{' .. text .. '}'
  end)
  for index, line in ipairs(lines) do lines[index] = symbols_in_code(line) end
  return '\\begin{chunkcode}\n' .. table.concat(lines, '\n') .. '\n\\end{chunkcode}\n'
end

local function foot_latex(state, chunk)
  local sentences = {}
  local uses = chunk.part_of.uses
  if #uses > 0 then
    table.insert(sentences, 'Used on \\weavepages{' .. labels(uses) .. '}.')
  elseif chunk.position == 1 then
    table.insert(sentences, 'This is the file ' .. inline_code(chunk.name) .. '.')
  end
  local defined = {}
  for index, identifier in ipairs(chunk.defines) do
    local users = html.users_of(state, identifier, chunk)
    local pages = #users > 0 and ' (\\weavepages{' .. labels(users) .. '})' or ''
    defined[index] = inline_code(identifier) .. pages
  end
  if #defined > 0 then table.insert(sentences, 'Defines ' .. table.concat(defined, ', ') .. '.') end
  return '\\weavefoot{' .. table.concat(sentences, ' ') .. '}\n'
end

local function chunk_latex(state, chunk)
  local definitions = chunk.part_of.definitions
  local before, after = definitions[chunk.position - 1], definitions[chunk.position + 1]
  return '\\weavehead{' .. label_of(chunk) .. '}{' .. chunk.number .. '}{' .. name_latex(chunk.name) .. '}{' ..
    (before and '\\weavemore' or '\\weavefirst') .. '}{' .. (before and label_of(before) or '') .. '}{' ..
    (after and label_of(after) or '') .. '}\n' .. code_latex(state, chunk) .. foot_latex(state, chunk)
end

local function prose_code(state, element)
  local name = element.text:match '^<<(.+)>>$'
  if name then
    if not state.book.names[name] or #state.book.names[name].definitions == 0 then
      problems.report(state.facts.path, element.attributes.at, 'no chunk is called <<' .. name .. '>>')
      return raw ''
    end
    return raw(reference(state, name))
  end
  local chapter = state.book.chapters[state.facts.key]
  local out, from = {}, 1
  for first, word, last in element.text:gmatch '()([%a_][%w_]*)()' do
    local definition = stream.definition_for_prose(state.book, word, chapter)
    if definition then
      table.insert(out, escape_code(element.text:sub(from, first - 1)))
      table.insert(out, '\\weaveid{' .. label_of(definition) .. '}{' .. escape_code(word) .. '}')
      from = last
    end
  end
  table.insert(out, escape_code(element.text:sub(from)))
  return raw('\\texttt{' .. breakable(table.concat(out)) .. '}')
end

-- ---- Numbers, tables, figures, claims -----------------------------------------

-- A number in two parts, of which the first ends before the point.
local function number_parts(number)
  local rest = number.fraction
  if number.exponent then rest = rest .. '\\,×\\,10\\textsuperscript{' .. number.exponent .. '}' end
  return number.sign .. number.digits, rest .. escape(number.unit)
end

local function number_latex(text)
  local number = results.number(text)
  if not number then return escape(text) end
  local before, after = number_parts(number)
  return before .. after
end

-- Points stand below each other: a column of numbers is two columns of
-- TeX's without a gap, the second beginning with the point.
local function tabular(found)
  local columns, layout, head = results.columns(found), {}, {}
  for index, header in ipairs(found.header) do
    local text = escape(results.trim(header))
    if columns[index].widest then
      table.insert(layout, 'r@{}l')
      table.insert(head, '\\multicolumn{2}{r}{\\weavetop{' .. text .. '}}')
    else
      table.insert(layout, columns[index].numeric and 'r' or 'l')
      table.insert(head, '\\weavetop{' .. text .. '}')
    end
  end
  local out = { '\\begin{tabular}{@{}' .. table.concat(layout) .. '@{}}\n\\toprule\n' .. table.concat(head, ' & ') .. ' \\\\\n\\midrule\n' }
  for _, row in ipairs(found.rows) do
    local cells = {}
    for index = 1, #found.header do
      local text = results.trim(row[index])
      local number = columns[index].numeric and results.number(text)
      if columns[index].widest then
        local before, after = text ~= '' and escape(text) or '', ''
        if number then before, after = number_parts(number) end
        table.insert(cells, before .. ' & ' .. after)
      else
        table.insert(cells, number and number_latex(text) or escape(text))
      end
    end
    table.insert(out, table.concat(cells, ' & ') .. ' \\\\\n')
  end
  table.insert(out, '\\bottomrule\n\\end{tabular}')
  return table.concat(out)
end

local function caption(macro, state, div, thing)
  local inlines = pandoc.List {
    raw('\\' .. macro .. '{' .. state.facts.key .. ':' .. div.identifier .. '}{' .. div.attributes.number .. '}{'),
  }
  if div.content[1] then inlines:extend(div.content[1].content) end
  inlines:insert(raw('}{' .. escape_code(results.command(thing)) .. '}'))
  return pandoc.Plain(inlines)
end

local function show_table(state, div)
  local found, problem = results.find_table(state.facts, div.attributes.target)
  if not found then
    problems.report(state.facts.path, div.attributes.at, problem)
    return {}
  end
  return {
    raw_block '\\begin{weavetable}', caption('weavetablecaption', state, div, found),
    raw_block('\\begin{weavetabular}' .. tabular(found) .. '\\end{weavetabular}'), raw_block '\\end{weavetable}',
  }
end

local function show_figure(state, div)
  local found, problem = results.find_figure(state.facts, div.attributes.target)
  if not found or not results.read_file(found.pdf) then
    problems.report(state.facts.path, div.attributes.at, problem or found.pdf .. ' was not drawn')
    return {}
  end
  return {
    raw_block('\\begin{weavefigure}\n\\weavegraphics{' .. found.pdf:gsub('%.pdf$', '') .. '}'),
    caption('weavefigurecaption', state, div, found), raw_block '\\end{weavefigure}',
  }
end

local function show_cell(state, element)
  local text, found = results.find_cell(state.facts, element.text)
  if not text then
    problems.report(state.facts.path, element.attributes.at, found)
    return raw ''
  end
  local facts = html.shown_in(state, found.id)
  if not facts then return raw(number_latex(text)) end
  return raw('\\hyperref[' .. facts.key .. ':' .. found.id .. ']{' .. number_latex(text) .. '}')
end

local function show_claim(state, span)
  local claim, problem = results.find_claim(state.facts, span.attributes.claim)
  if claim and not claim.holds then
    problem = 'this is false: "' .. pandoc.utils.stringify(span.content) .. '"; ' ..
      results.command(claim) .. ' says: ' .. claim.message
  end
  if problem then
    problems.report(state.facts.path, span.attributes.at, problem)
    return {}
  end
  local content = pandoc.List(span.content)
  local macro = span.attributes.inner and '\\weavechecked' or '\\weaveclaim'
  content:insert(raw(macro .. '{' .. escape(claim.message) .. '}'))
  return pandoc.Span(content)
end

-- ---- Prose --------------------------------------------------------------------

local function show_link(state, link)
  local id = link.target:match '^#(.+)$'
  if not id then return nil end
  local facts = links.resolve(state.map.chapters, state.facts, id, link.attributes.at)
  if not facts then return {} end
  local label = facts.key .. ':' .. id
  local content = pandoc.List { raw('\\hyperref[' .. label .. ']{') }
  content:extend(link.content)
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
  if classes:includes 'weave-table' then return show_table(state, div) end
  if classes:includes 'weave-figure' then return show_figure(state, div) end
  if classes:includes 'aside' then
    return within(is_short(div.content) and 'weaveaside' or 'weaveinset', div.content)
  end
  for _, name in ipairs { 'ask', 'answer', 'hint', 'reading' } do
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

local function show_string(text)
  local changed = symbols_in_text(text)
  if changed == text then return nil end
  local out, from = pandoc.List(), 1
  for first, macro, last in changed:gmatch '()(\\textsymbol%b{})()' do
    if first > from then out:insert(pandoc.Str(changed:sub(from, first - 1))) end
    out:insert(raw(macro))
    from = last
  end
  if from <= #changed then out:insert(pandoc.Str(changed:sub(from))) end
  return out
end

function latex.render(state, blocks)
  local doc = pandoc.Pandoc(blocks):walk {
    Note = mark_inner, Table = mark_inner,
    Div = function(div)
      if div.classes:includes 'weave-table' or div.classes:includes 'weave-figure' then return mark_inner(div) end
    end,
  }
  doc = doc:walk {
    Str = function(element) return show_string(element.text) end,
    Code = function(element)
      if element.classes:includes 'noweb' then return prose_code(state, element) end
      if element.classes:includes 'cell' then return show_cell(state, element) end
      return raw(inline_code(element.text))
    end,
    Span = function(span)
      if span.attributes.claim then return show_claim(state, span) end
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
        return raw_block(chunk_latex(state, state.book.chunk[block.attributes.label]))
      end
    end,
    Div = function(div) return show_div(state, div) end,
  }
  return doc.blocks
end

-- ---- Indexes --------------------------------------------------------------------

function latex.chunk_index(state)
  local out = { '\\begin{weavelist}\n' }
  for _, name in ipairs(html.sorted(state.book.names, function(name) return name.name end)) do
    if #name.definitions > 0 then
      local uses = #name.uses > 0 and '{' .. labels(name.uses) .. '}' or '{}'
      table.insert(out, '\\weavechunkentry{' .. name_latex(name.name) .. '}{' .. labels(name.definitions) .. '}' .. uses .. '\n')
    end
  end
  table.insert(out, '\\end{weavelist}\n')
  return table.concat(out)
end

function latex.identifier_index(state)
  local out = { '\\begin{weavelist}\n' }
  for _, identifier in ipairs(html.sorted(state.book.identifiers, function(entry) return entry.name end)) do
    table.insert(out, '\\weaveidentifierentry{' .. breakable(escape_code(identifier.name)) .. '}{' ..
      labels(identifier.definitions) .. '}{' .. labels(identifier.uses) .. '}\n')
  end
  table.insert(out, '\\end{weavelist}\n')
  return table.concat(out)
end

latex.raw_block = raw_block

return latex
