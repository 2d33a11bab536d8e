-- Chunks, and the code in prose, as HTML.

local code = require 'code'
local problems = require 'problems'
local stream = require 'stream'
local write = require 'html_text'

local escape, raw = write.escape, write.raw
local html_chunks = {}

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

local function identifier_html(state, piece, chunk)
  local target = piece.definition
  if target == chunk then return escape(piece.text) end
  return '<a class="identifier" href="' .. chunk_href(state, target) .. '">' .. escape(piece.text) .. '</a>'
end

local function code_html(state, chunk)
  local lines = code.lines(chunk, 'html', function(piece)
    if piece.kind == 'use' then return reference_html(state, piece.name, 'use') end
    return identifier_html(state, piece, chunk)
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

local FEW = 6

local function identifier_uses_html(state, identifier, chunk)
  local users = stream.users(state.book, identifier, chunk)
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
    table.insert(sentences, '<p>Defines ' .. table.concat(defined, ', ') .. '</p>')
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

html_chunks.chunk, html_chunks.name, html_chunks.templates = chunk_html, name_html, templates_html
html_chunks.number_links, html_chunks.prose_code = number_links, prose_code

return html_chunks
