-- The book as pages of HTML.

local code = require 'code'
local links = require 'links'
local problems = require 'problems'
local results = require 'results'
local stream = require 'stream'
local structure = require 'structure'

local html = {}

local ESCAPES = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }
local function escape(text) return (text:gsub('[&<>"]', ESCAPES)) end

local function raw(text) return pandoc.RawInline('html', text) end
local function raw_block(text) return pandoc.RawBlock('html', text) end

local function inlines_to_html(inlines)
  local doc = pandoc.Pandoc { pandoc.Plain(inlines) }
  return (pandoc.write(doc, 'html', { html_math_method = 'mathml' }):gsub('%s+$', ''))
end
html.inlines = inlines_to_html

-- ---- Chunks ----------------------------------------------------------------

-- state.book, state.key (of the page), state.foreign (chunks of other
-- pages that this one refers to, for their previews).

local function chunk_href(state, chunk)
  if chunk.chapter.key == state.key then return '#' .. chunk.id end
  if state.foreign and not state.foreign[chunk.id] then
    state.foreign[chunk.id] = chunk
    table.insert(state.foreign, chunk)
  end
  return chunk.chapter.key .. '.html#' .. chunk.id
end

-- A chunk's name may hold [[code]].
local function name_html(name)
  return (escape(name):gsub('%[%[(.-)%]%]', '<code>%1</code>'))
end

local function reference_html(state, name, class)
  local first = state.book.names[name].definitions[1]
  if not first then return '⟨' .. name_html(name) .. '⟩' end
  return '<a class="' .. class .. '" href="' .. chunk_href(state, first) .. '">⟨<i>' .. name_html(name) ..
    '</i> <span class="number">' .. first.number .. '</span>⟩</a>'
end

local function number_link(state, chunk)
  return '<a href="' .. chunk_href(state, chunk) .. '">' .. chunk.number .. '</a>'
end

local function number_links(state, chunks)
  local out = {}
  for index, chunk in ipairs(chunks) do out[index] = number_link(state, chunk) end
  if #out < 2 then return out[1] or '' end
  return table.concat(out, ', ', 1, #out - 1) .. ' and ' .. out[#out]
end

local function identifier_html(state, piece, chunk, quiet)
  local target = piece.definition
  if quiet or target == chunk then return escape(piece.text) end
  return '<a class="identifier" href="' .. chunk_href(state, target) .. '">' .. escape(piece.text) .. '</a>'
end

local function code_html(state, chunk)
  local lines = code.lines(chunk, 'html', function(piece, quiet)
    if piece.kind == 'use' then return reference_html(state, piece.name, 'use') end
    return identifier_html(state, piece, chunk, quiet)
  end)
  return '<pre tabindex="0"><code>' .. table.concat(lines, '\n') .. '</code></pre>'
end

local function file_of(chunk) return chunk.part_of.is_root and chunk.name or nil end

local function head_html(state, chunk, is_preview)
  local definitions = chunk.part_of.definitions
  local before, after = definitions[chunk.position - 1], definitions[chunk.position + 1]
  local sign = before and '+≡' or '≡'
  local href = is_preview and chunk.chapter.key .. '.html#' .. chunk.id or '#' .. chunk.id
  local out = {
    '<div class="chunk-head"><a class="chunk-name" href="', href, '">⟨<i>', name_html(chunk.name), '</i>⟩</a>',
    '<span class="sign">', sign, '</span>',
  }
  local function put(...) for _, text in ipairs { ... } do table.insert(out, text) end end
  if file_of(chunk) and not before then put('<span class="file">a file</span>') end
  put '<span class="chunk-way">'
  if not is_preview then
    if before then put('<a rel="prev" title="the part before" href="', chunk_href(state, before), '">◂ ', before.number, '</a> ') end
    if after then put('<a rel="next" title="continued" href="', chunk_href(state, after), '">', after.number, ' ▸</a> ') end
  end
  put('<span class="number">', chunk.number, '</span></span></div>')
  return table.concat(out)
end

-- The chunks that use an identifier which this chunk defines.
local function users_of(state, identifier, chunk)
  local users = {}
  for _, user in ipairs(state.book.identifiers[identifier].uses) do
    if stream.definition(state.book, identifier, user) == chunk then table.insert(users, user) end
  end
  return users
end
html.users_of = users_of

local FEW = 6

local function identifier_uses_html(state, identifier, chunk)
  local users = users_of(state, identifier, chunk)
  local name = '<a class="defined" href="identifiers.html#identifier-' .. identifier .. '"><code>' .. identifier .. '</code></a>'
  if #users == 0 then return name end
  local shown = {}
  for index = 1, math.min(#users, FEW) do shown[index] = number_link(state, users[index]) end
  local more = #users > FEW and ' …' or ''
  return name .. ' <span class="uses">' .. table.concat(shown, ' ') .. more .. '</span>'
end

local function foot_html(state, chunk)
  local sentences = {}
  local uses = chunk.part_of.uses
  if #uses > 0 then
    table.insert(sentences, '<p>Used in ' .. number_links(state, uses) .. '.</p>')
  elseif chunk.position == 1 then
    table.insert(sentences, '<p>This is the file <code>' .. escape(chunk.name) .. '</code>.</p>')
  end
  if #chunk.defines > 0 then
    local defined = {}
    for index, identifier in ipairs(chunk.defines) do
      defined[index] = '<span class="entry">' .. identifier_uses_html(state, identifier, chunk) .. '</span>'
    end
    table.insert(sentences, '<p>Defines ' .. table.concat(defined, ', ') .. '.</p>')
  end
  if #sentences == 0 then return '' end
  return '<div class="chunk-foot">' .. table.concat(sentences) .. '</div>'
end

local function chunk_html(state, chunk)
  return '<div class="chunk" id="' .. chunk.id .. '">' .. head_html(state, chunk) ..
    code_html(state, chunk) .. foot_html(state, chunk) .. '</div>'
end

-- The chunks of other pages that this page refers to, for the previews.
local function templates_html(state)
  local out, count = {}, #state.foreign
  for index = 1, count do
    local chunk = state.foreign[index]
    local alone = { book = state.book, key = chunk.chapter.key }
    -- Links inside a preview lead away from this page.
    local body = head_html(alone, chunk, true) .. code_html({ book = state.book, key = '' }, chunk)
    table.insert(out, '<template data-for="' .. chunk.id .. '"><div class="chunk">' .. body .. '</div></template>\n')
  end
  return table.concat(out)
end

-- ---- Code in prose ----------------------------------------------------------

local function prose_code(state, element)
  local name = element.text:match '^<<(.+)>>$'
  if name then
    if not state.book.names[name] or #state.book.names[name].definitions == 0 then
      problems.report(state.facts.path, element.attributes.at, 'no chunk is called <<' .. name .. '>>')
      return raw ''
    end
    return raw(reference_html(state, name, 'use'))
  end
  local chapter = state.book.chapters[state.key]
  local text = escape(element.text):gsub('[%a_][%w_]*', function(word)
    local definition = stream.definition_for_prose(state.book, word, chapter)
    if not definition then return nil end
    return '<a class="identifier" href="' .. chunk_href(state, definition) .. '">' .. word .. '</a>'
  end)
  return raw('<code>' .. text .. '</code>')
end

-- ---- Numbers, tables, figures, claims ---------------------------------------

-- Figures of a number before its point, and what follows.
local function number_parts(number)
  local rest = number.fraction
  if number.exponent then rest = rest .. ' × 10<sup>' .. number.exponent .. '</sup>' end
  return number.sign .. number.digits, rest .. escape(number.unit)
end

local function number_html(text)
  local number = results.number(text)
  if not number then return escape(text) end
  local before, after = number_parts(number)
  return before .. after
end

local function table_cell(text, column, tag)
  text = results.trim(text)
  local number = column.numeric and results.number(text)
  local class = column.numeric and ' class="numeral"' or ''
  local content = number and number_html(text) or escape(text)
  if number and column.widest then
    local before, after = number_parts(number)
    content = before .. '<span class="tail" data-widest="' .. escape(column.widest) .. '">' .. after .. '</span>'
  end
  return '<' .. tag .. class .. '>' .. content .. '</' .. tag:match '^%a+' .. '>'
end

local function table_html(found)
  local columns = results.columns(found)
  local out = { '<div class="scroll" tabindex="0"><table>\n<thead><tr>' }
  for index, header in ipairs(found.header) do
    local class = columns[index].numeric and ' class="numeral"' or ''
    table.insert(out, '<th scope="col"' .. class .. '>' .. escape(results.trim(header)) .. '</th>')
  end
  table.insert(out, '</tr></thead>\n<tbody>\n')
  for _, row in ipairs(found.rows) do
    table.insert(out, '<tr>')
    for index, cell in ipairs(row) do
      local tag = index == 1 and 'th scope="row"' or 'td'
      table.insert(out, table_cell(cell, columns[index] or {}, tag))
    end
    table.insert(out, '</tr>\n')
  end
  table.insert(out, '</tbody></table></div>')
  return table.concat(out)
end

local function caption(div, thing, word)
  local inlines = pandoc.List { raw('<figcaption><b>' .. word .. ' ' .. div.attributes.number .. '</b> ') }
  if div.content[1] then inlines:extend(div.content[1].content) end
  inlines:insert(raw(' <code class="command">' .. escape(results.command(thing)) .. '</code></figcaption>'))
  return pandoc.Plain(inlines)
end

local function show_table(state, div)
  local found, problem = results.find_table(state.facts, div.attributes.target)
  if not found then
    problems.report(state.facts.path, div.attributes.at, problem)
    return {}
  end
  return {
    raw_block('<figure class="table" id="' .. div.identifier .. '">'),
    caption(div, found, 'Table'), raw_block(table_html(found)), raw_block '</figure>',
  }
end

-- gnuplot's SVG as part of the page: names made unique, black and white
-- left to the page, the size to the column.
local function inline_svg(text, id, label)
  local svg = text:match '<svg.*</svg>' or ''
  local prefix = id .. '-'
  svg = svg:gsub('(%s)id%s*=%s*(["\'])([^"\']+)', '%1id=%2' .. prefix .. '%3')
  svg = svg:gsub('url%(#', 'url(#' .. prefix):gsub('(href%s*=%s*["\'])#', '%1#' .. prefix)
  svg = svg:gsub('<title>[^<]*</title>', ''):gsub('<desc>[^<]*</desc>', '')
  svg = svg:gsub("rgb%(%s*0,%s*0,%s*0%)", 'currentColor'):gsub('(["\':%s])black(["\';%s])', '%1currentColor%2')
  svg = svg:gsub('#000000', 'currentColor'):gsub('(["\'])#000(["\'])', '%1currentColor%2')
  local width = svg:match '^<svg[^>]-%swidth=["\']([%d.]+)'
  local height = svg:match '^<svg[^>]-%sheight=["\']([%d.]+)'
  svg = svg:gsub('^<svg([^>]*)>', function(attributes)
    local box = attributes:match 'viewBox=["\']([^"\']+)["\']' or '0 0 ' .. (width or 600) .. ' ' .. (height or 400)
    return '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="' .. box ..
      '" style="max-width:' .. (width or 600) .. 'px" role="img" aria-label="' .. escape(label) .. '">'
  end)
  return svg
end

local function show_figure(state, div)
  local found, problem = results.find_figure(state.facts, div.attributes.target)
  local svg = found and results.read_file(found.svg)
  if not svg then
    problems.report(state.facts.path, div.attributes.at, problem or found.svg .. ' was not drawn')
    return {}
  end
  local label = pandoc.utils.stringify(div.content)
  return {
    raw_block('<figure class="figure" id="' .. div.identifier .. '"><div class="scroll" tabindex="0">' ..
      inline_svg(svg, div.identifier, label) .. '</div>'),
    caption(div, found, 'Figure'), raw_block '</figure>',
  }
end

-- Where in the book a table stands: its chapter's facts, or nil.
local function shown_in(state, id)
  if state.facts.ids[id] then return state.facts end
  for _, facts in ipairs(state.map.chapters) do
    if facts.ids[id] then return facts end
  end
end

local function page_href(state, facts, id)
  local page = facts.key == state.facts.key and '' or facts.key .. '.html'
  if id and not (page ~= '' and facts.ids[id] and facts.ids[id].kind == 'chapter') then page = page .. '#' .. id end
  return page
end

local function show_cell(state, element)
  local text, found = results.find_cell(state.facts, element.text)
  if not text then
    problems.report(state.facts.path, element.attributes.at, found)
    return raw ''
  end
  local facts = shown_in(state, found.id)
  local number = number_html(text)
  if not facts then
    return raw('<span class="cell" title="' .. escape(results.command(found)) .. '">' .. number .. '</span>')
  end
  return raw('<a class="cell" href="' .. page_href(state, facts, found.id) .. '">' .. number .. '</a>')
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
  local number = span.identifier:match '%d+$'
  table.insert(state.checked, { number = number, claim = claim })
  local content = pandoc.List(span.content)
  content:insert(raw('<a class="check" href="#checked-' .. number .. '" title="' .. escape(claim.message) ..
    '" aria-label="checked: ' .. escape(claim.message) .. '">✓</a>'))
  return pandoc.Span(content, pandoc.Attr(span.identifier, { 'claim' }))
end

local function checked_html(state)
  if #state.checked == 0 then return '' end
  local out = {
    '<section class="checked" id="checked"><h2>Checked by the programs</h2>\n',
    '<p>The sentences marked ✓ are computed anew whenever this book is made. What the programs found:</p>\n<ol>\n',
  }
  table.sort(state.checked, function(a, b) return tonumber(a.number) < tonumber(b.number) end)
  for _, entry in ipairs(state.checked) do
    table.insert(out, '<li id="checked-' .. entry.number .. '" value="' .. entry.number .. '">' .. escape(entry.claim.message) ..
      ' <code class="command">' .. escape(results.command(entry.claim)) .. '</code>' ..
      ' <a href="#claim-' .. entry.number .. '" aria-label="back to the sentence">↩</a></li>\n')
  end
  table.insert(out, '</ol></section>')
  return table.concat(out)
end

-- ---- Prose ------------------------------------------------------------------

local function show_link(state, link)
  local id = link.target:match '^#(.+)$'
  if not id then return nil end
  local facts = links.resolve(state.map.chapters, state.facts, id, link.attributes.at)
  if not facts then return {} end
  link.target = page_href(state, facts, id)
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
  if div.classes:includes 'weave-table' then return show_table(state, div) end
  if div.classes:includes 'weave-figure' then return show_figure(state, div) end
  if div.classes:includes 'answer' then return fold('Answer', 'answer', div.content) end
  if div.classes:includes 'hint' then return fold('Hint', 'hint', div.content) end
  if div.classes:includes 'contents' then
    state.has_contents = true
    return raw_block(html.contents(state))
  end
end

local function show_code_block(state, block)
  if not block.classes:includes 'chunk' then return nil end
  return raw_block(chunk_html(state, state.book.chunk[block.attributes.label]))
end

local function show_table_of_prose(block)
  return { raw_block '<div class="scroll prose-table" tabindex="0">', block, raw_block '</div>' }
end

-- Brackets in MathML grow by themselves; pandoc 2 knows no \\Bigl.
local function portable_math(math)
  local text = math.text:gsub('\\[bB]igg?[lrm]?%f[%A]%s*', '')
  return pandoc.Math(math.mathtype, text)
end

function html.render(state, blocks)
  state.checked, state.foreign = {}, {}
  local doc = pandoc.Pandoc(blocks):walk {
    Code = function(element)
      if element.classes:includes 'noweb' then return prose_code(state, element) end
      if element.classes:includes 'cell' then return show_cell(state, element) end
    end,
    Span = function(span)
      if span.attributes.claim then return show_claim(state, span) end
      if span.classes:includes 'index-entry' then
        return pandoc.Span(span.content, pandoc.Attr(span.identifier, { 'index-entry' }))
      end
    end,
    Link = function(link) return show_link(state, link) end,
    Math = portable_math,
    Header = function(header) return show_header(state, header) end,
    CodeBlock = function(block) return show_code_block(state, block) end,
    Table = show_table_of_prose,
    Div = function(div) return show_div(state, div) end,
  }
  return doc.blocks
end

-- ---- Around the page ---------------------------------------------------------

local function section_list(facts, current)
  if #facts.sections == 0 then return '' end
  local out = { '<ol class="sections">' }
  for _, section in ipairs(facts.sections) do
    local href = (current and '' or facts.key .. '.html') .. '#' .. section.id
    local number = section.number and '<span class="number">' .. section.number .. '</span> ' or ''
    table.insert(out, '<li><a href="' .. href .. '">' .. number .. section.title .. '</a></li>')
  end
  table.insert(out, '</ol>')
  return table.concat(out)
end

local BACK_PAGES = {
  { key = 'chunks', title = 'Chunks' },
  { key = 'identifiers', title = 'Identifiers' },
  { key = 'subjects', title = 'Subjects' },
}
html.back_pages = BACK_PAGES

local function chapter_item(facts, state, with_all_sections)
  local current = facts.key == state.key
  local out = {
    '<li', current and ' class="current"' or '', '><a href="', facts.key, '.html"', current and ' aria-current="page"' or '',
    '><span class="label">', facts.label, '</span> <span class="title">', facts.title, '</span></a>',
  }
  if current or with_all_sections then table.insert(out, section_list(facts, current)) end
  table.insert(out, '</li>\n')
  return table.concat(out)
end

local function chapter_list(state, class, wanted, with_all_sections)
  local out = {}
  for _, facts in ipairs(state.map.chapters) do
    if facts.key ~= 'index' and wanted(facts) then
      table.insert(out, chapter_item(facts, state, with_all_sections))
    end
  end
  return #out > 0 and '<ol class="' .. class .. '">\n' .. table.concat(out) .. '</ol>\n' or ''
end

local function is_day(facts) return facts.is_day end
local function is_appendix(facts) return not facts.is_day end

local function back_list(state)
  local out = { '<ol class="back-pages">\n' }
  for _, page in ipairs(BACK_PAGES) do
    local current = page.key == state.key
    table.insert(out, '<li' .. (current and ' class="current"' or '') .. '><a href="' .. page.key .. '.html"' ..
      (current and ' aria-current="page"' or '') .. '>Index of ' .. page.title:lower() .. '</a></li>\n')
  end
  table.insert(out, '</ol>')
  return table.concat(out)
end

-- The contents beside or below every page.
function html.sidebar(state)
  return chapter_list(state, 'days', is_day) .. chapter_list(state, 'appendices', is_appendix) .. back_list(state)
end

-- The contents on the first page, with the sections of all chapters.
function html.contents(state)
  return '<nav class="full-contents" aria-label="Chapters and sections">\n' ..
    chapter_list(state, 'days', is_day, true) .. chapter_list(state, 'appendices', is_appendix, true) ..
    back_list(state) .. '</nav>'
end

-- The pages in the order in which they are read.
function html.neighbours(state)
  local pages = { { key = 'index', title = escape(state.title) } }
  for _, facts in ipairs(state.map.chapters) do
    if facts.key ~= 'index' then
      table.insert(pages, { key = facts.key, label = facts.label, title = facts.title })
    end
  end
  for _, page in ipairs(BACK_PAGES) do
    table.insert(pages, { key = page.key, title = 'Index of ' .. page.title:lower() })
  end
  for index, page in ipairs(pages) do
    if page.key == state.key then return pages[index - 1], pages[index + 1] end
  end
end

-- ---- Indexes -------------------------------------------------------------------

local function sorted(list, name)
  local copy = table.move(list, 1, #list, 1, {})
  table.sort(copy, function(a, b)
    local left, right = name(a):lower(), name(b):lower()
    if left == right then return name(a) < name(b) end
    return left < right
  end)
  return copy
end
html.sorted = sorted

local function element_name(element) return element.name end

function html.chunk_index(state)
  local out = { '<dl class="chunk-index">\n' }
  for _, name in ipairs(sorted(state.book.names, element_name)) do
    if #name.definitions > 0 then
      local file = name.is_root and ' <span class="file">a file</span>' or ''
      table.insert(out, '<dt id="name-' .. name.definitions[1].id:gsub('^chunk%-', '') .. '">⟨<i>' .. name_html(name.name) .. '</i>⟩' .. file .. '</dt><dd>' ..
        number_links(state, name.definitions) ..
        (#name.uses > 0 and '<span class="uses">, used in ' .. number_links(state, name.uses) .. '</span>' or '') .. '</dd>\n')
    end
  end
  table.insert(out, '</dl>')
  return table.concat(out)
end

function html.identifier_index(state)
  local out = { '<dl class="identifier-index">\n' }
  for _, identifier in ipairs(sorted(state.book.identifiers, element_name)) do
    table.insert(out, '<dt id="identifier-' .. identifier.name .. '"><code>' .. identifier.name .. '</code></dt><dd><b>' ..
      number_links(state, identifier.definitions) .. '</b>' ..
      (#identifier.uses > 0 and '<span class="uses">, used in ' .. number_links(state, identifier.uses) .. '</span>' or '') .. '</dd>\n')
  end
  table.insert(out, '</dl>')
  return table.concat(out)
end

-- "entropy, of a head" goes under "entropy".
function html.subjects(map)
  local subjects = {}
  local function subject(list, name)
    if not list[name] then
      list[name] = { name = name, places = {}, parts = {} }
      table.insert(list, list[name])
    end
    return list[name]
  end
  for _, facts in ipairs(map.chapters) do
    for _, term in ipairs(facts.terms) do
      local main, part = term.term:match '^([^,]+),%s*(.+)$'
      local entry = subject(subjects, main or term.term)
      if part then entry = subject(entry.parts, part) end
      table.insert(entry.places, { facts = facts, id = term.id, place = term.place })
    end
  end
  return subjects
end

local function places_html(places)
  local out, last = {}, nil
  for _, place in ipairs(places) do
    if place.place ~= last then
      table.insert(out, '<a href="' .. place.facts.key .. '.html#' .. place.id .. '">' .. place.place .. '</a>')
    end
    last = place.place
  end
  return table.concat(out, ', ')
end

function html.subject_index(state)
  local out = { '<dl class="subject-index">\n' }
  local subjects = html.subjects(state.map)
  if #subjects == 0 then return '<p>No subject has an entry yet.</p>' end
  for _, subject in ipairs(sorted(subjects, element_name)) do
    table.insert(out, '<dt>' .. escape(subject.name) .. '</dt><dd>' .. places_html(subject.places) .. '</dd>\n')
    for _, part in ipairs(sorted(subject.parts, element_name)) do
      table.insert(out, '<dt class="part">' .. escape(part.name) .. '</dt><dd>' .. places_html(part.places) .. '</dd>\n')
    end
  end
  table.insert(out, '</dl>')
  return table.concat(out)
end

html.templates, html.checked, html.escape, html.number = templates_html, checked_html, escape, number_html
html.shown_in, html.structure = shown_in, structure

return html
