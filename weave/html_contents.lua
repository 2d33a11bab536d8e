-- What leads around the book: contents, neighbours, indexes.

local chunks = require 'html_chunks'
local stream = require 'stream'
local write = require 'html_text'

local escape = write.escape
local html_contents = {}

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
html_contents.back_pages = BACK_PAGES

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
function html_contents.sidebar(state)
  return chapter_list(state, 'days', is_day) .. chapter_list(state, 'appendices', is_appendix) .. back_list(state)
end

-- The contents on the first page, with the sections of all chapters.
function html_contents.full(state)
  return '<nav class="full-contents" aria-label="Chapters and sections">\n' ..
    chapter_list(state, 'days', is_day, true) .. chapter_list(state, 'appendices', is_appendix, true) ..
    back_list(state) .. '</nav>'
end

-- The pages in the order in which they are read.
function html_contents.neighbours(state)
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

function html_contents.chunk_index(state)
  local out = { '<dl class="chunk-index">\n' }
  for _, name in ipairs(stream.sorted(state.book.names)) do
    if #name.definitions > 0 then
      local file = name.is_root and ' <span class="file">a file</span>' or ''
      table.insert(out, '<dt id="name-' .. name.definitions[1].id:gsub('^chunk%-', '') .. '">⟨<i>' .. chunks.name(name.name) .. '</i>⟩' .. file .. '</dt> <dd>' ..
        chunks.number_links(state, name.definitions) ..
        (#name.uses > 0 and '<span class="uses">, used in ' .. chunks.number_links(state, name.uses) .. '</span>' or '') .. '</dd>\n')
    end
  end
  table.insert(out, '</dl>')
  return table.concat(out)
end

function html_contents.identifier_index(state)
  local out = { '<dl class="identifier-index">\n' }
  for _, identifier in ipairs(stream.sorted(state.book.identifiers)) do
    table.insert(out, '<dt id="identifier-' .. identifier.name .. '"><code>' .. identifier.name .. '</code></dt> <dd><b>' ..
      chunks.number_links(state, identifier.definitions) .. '</b>' ..
      (#identifier.uses > 0 and '<span class="uses">, used in ' .. chunks.number_links(state, identifier.uses) .. '</span>' or '') .. '</dd>\n')
  end
  table.insert(out, '</dl>')
  return table.concat(out)
end

-- "entropy, of a head" goes under "entropy".
function html_contents.subjects(map)
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

function html_contents.subject_index(state)
  local out = { '<dl class="subject-index">\n' }
  local subjects = html_contents.subjects(state.map)
  if #subjects == 0 then return '<p>No subject has an entry yet.</p>' end
  for _, subject in ipairs(stream.sorted(subjects)) do
    table.insert(out, '<dt>' .. escape(subject.name) .. '</dt> <dd>' .. places_html(subject.places) .. '</dd>\n')
    for _, part in ipairs(stream.sorted(subject.parts)) do
      table.insert(out, '<dt class="part">' .. escape(part.name) .. '</dt> <dd>' .. places_html(part.places) .. '</dd>\n')
    end
  end
  table.insert(out, '</dl>')
  return table.concat(out)
end

return html_contents
