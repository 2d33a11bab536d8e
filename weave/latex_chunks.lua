-- Chunks, the code in prose, and the indexes of both as LaTeX.

local code = require 'code'
local problems = require 'problems'
local stream = require 'stream'
local write = require 'latex_text'

local raw, escape, escape_code, breakable = write.raw, write.escape, write.escape_code, write.breakable
local inline_code, symbols_in_code = write.code, write.symbols_in_code
local latex_chunks = {}

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
  local lines = code.lines(chunk, 'latex', function(piece)
    if piece.kind == 'use' then return reference(state, piece.name) end
    local text = piece.text:gsub('_', '\\_')
    if piece.definition == chunk then return text end
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
    local users = stream.users(state.book, identifier, chunk)
    local pages = #users > 0 and ' (\\weavepages{' .. labels(users) .. '})' or ''
    defined[index] = inline_code(identifier) .. pages
  end
  if #defined > 0 then table.insert(sentences, 'Defines ' .. table.concat(defined, ', ') .. '.') end
  return '\\weavefoot{' .. table.concat(sentences, ' ') .. '}\n'
end

-- A short chunk stays on one page, of a long one the first lines do.
local function lines_kept(chunk)
  local lines = #chunk.lines + 3
  return lines <= 11 and lines or 7
end

local function chunk_latex(state, chunk)
  local definitions = chunk.part_of.definitions
  local before, after = definitions[chunk.position - 1], definitions[chunk.position + 1]
  return '\\weavehead{' .. label_of(chunk) .. '}{' .. chunk.number .. '}{' .. name_latex(chunk.name) .. '}{' ..
    (before and '\\weavemore' or '\\weavefirst') .. '}{' .. (before and label_of(before) or '') .. '}{' ..
    (after and label_of(after) or '') .. '}{' .. lines_kept(chunk) .. '}\n' .. code_latex(state, chunk) .. foot_latex(state, chunk)
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

function latex_chunks.chunk_index(book)
  local out = { '\\begin{weavelist}\n' }
  for _, name in ipairs(stream.sorted(book.names)) do
    if #name.definitions > 0 then
      local uses = #name.uses > 0 and '{' .. labels(name.uses) .. '}' or '{}'
      table.insert(out, '\\weavechunkentry{' .. name_latex(name.name) .. '}{' .. labels(name.definitions) .. '}' .. uses .. '\n')
    end
  end
  table.insert(out, '\\end{weavelist}\n')
  return table.concat(out)
end

function latex_chunks.identifier_index(book)
  local out = { '\\begin{weavelist}\n' }
  for _, identifier in ipairs(stream.sorted(book.identifiers)) do
    table.insert(out, '\\weaveidentifierentry{' .. breakable(escape_code(identifier.name)) .. '}{' ..
      labels(identifier.definitions) .. '}{' .. labels(identifier.uses) .. '}\n')
  end
  table.insert(out, '\\end{weavelist}\n')
  return table.concat(out)
end

latex_chunks.chunk, latex_chunks.prose_code = chunk_latex, prose_code

return latex_chunks
