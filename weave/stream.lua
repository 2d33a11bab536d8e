-- Reads the stream that noweb's filters make of all chapters
-- (markup | autodefs.c | finduses | noidx) into tables:
--
--   book.chapters      the chapters in order, and by their key ("04-masks")
--   chapter.parts      its documentation and its chunks, in order
--   book.chunks        all chunks in order; book.chunk[label] finds one
--   book.names[name]   definitions and uses of a chunk name
--   book.identifiers   definitions and uses of every identifier
--
-- noweb knows what is defined and used where; nothing here parses C.

local stream = {}

local function split_line(line)
  local keyword, rest = line:match '^@(%S+) ?(.*)$'
  if keyword == 'xref' or keyword == 'index' then
    local second, argument = rest:match '^(%S+) ?(.*)$'
    return keyword .. ' ' .. second, argument
  end
  return keyword, rest
end

-- "04-masks" is Day 4, "a-tensors" is Appendix A.
local function new_chapter(path)
  local key = path:match '([^/]+)%.nw$' or path
  local day = key:match '^(%d+)%-'
  local letter = key:match '^(%a)%-'
  local number = day and tostring(tonumber(day)) or letter and letter:upper() or key
  return {
    path = path, key = key, number = number, parts = {}, chunks = {},
    is_day = day ~= nil,
    label = day and 'Day ' .. number or letter and 'Appendix ' .. number or key,
  }
end

local function slug(text)
  text = text:lower():gsub('[^%w]+', '-'):gsub('^%-', ''):gsub('%-$', '')
  return text
end

-- Documentation is kept as lines of text with their numbers. The two
-- brackets of [[code]] become the control characters 1 and 2: the reader
-- decides later what they mean in that place.
stream.QUOTE, stream.UNQUOTE = '\1', '\2'

local function begin_part(state, kind)
  local part
  if kind == 'code' then
    part = { kind = 'code', chapter = state.chapter, lines = { {} }, defines = {}, found = {}, stated = {} }
    state.recent = {}
  else
    part = { kind = 'docs', lines = {} }
    state.text = ''
  end
  state.part = part
  table.insert(state.chapter.parts, part)
end

local handle = {}

handle['file'] = function(state, path)
  state.chapter, state.line = new_chapter(path), 1
  table.insert(state.book.chapters, state.chapter)
  state.book.chapters[state.chapter.key] = state.chapter
end

handle['begin'] = function(state, rest) begin_part(state, rest:match '^%a+') end

handle['end'] = function(state)
  local part = state.part
  if part.kind == 'docs' and state.text ~= '' then
    table.insert(part.lines, { text = state.text, line = state.line })
  elseif part.kind == 'code' then
    table.move(state.recent, 1, #state.recent, #part.found + 1, part.found)
    state.recent = {}
    -- What follows the last line break is an empty line.
    if #part.lines[#part.lines] == 0 then table.remove(part.lines) end
  end
  state.part = nil
end

handle['text'] = function(state, text)
  local part = state.part
  if not part then return end
  if part.kind == 'docs' then
    state.text = state.text .. text
  elseif text ~= '' then
    local kind = state.identifier == text and 'identifier' or 'text'
    table.insert(part.lines[#part.lines], { kind = kind, text = text })
  end
  state.identifier = nil
end

handle['nl'] = function(state)
  local part = state.part
  if not part then return end
  if part.kind == 'docs' then
    table.insert(part.lines, { text = (state.text:gsub('\r$', '')), line = state.line })
    state.text = ''
  elseif part.opened then
    part.lines[#part.lines].line = state.line
    table.insert(part.lines, {})
    table.move(state.recent, 1, #state.recent, #part.found + 1, part.found)
    state.recent = {}
  else
    part.opened = true -- the line break after <<name>>=
  end
  state.line = state.line + 1
end

-- Ends "@ %def …", before which came what it defines.
handle['index nl'] = function(state)
  local stated = state.part.stated
  table.move(state.recent, 1, #state.recent, #stated + 1, stated)
  state.recent = {}
  state.line = state.line + 1
end

handle['defn'] = function(state, name)
  local chunk, chapter = state.part, state.chapter
  chunk.name, chunk.line = name, state.line
  table.insert(state.book.chunks, chunk)
  table.insert(chapter.chunks, chunk)
  chunk.number = chapter.number .. '.' .. #chapter.chunks
  state.book.chunk[chunk.label] = chunk
end

handle['xref label'] = function(state, label)
  local part = state.part
  if part and part.kind == 'code' and not part.label then part.label = label end
end

handle['use'] = function(state, name)
  local part = state.part
  if part.kind == 'docs' then
    state.text = state.text .. '<<' .. name .. '>>'
  else
    table.insert(part.lines[#part.lines], { kind = 'use', name = name })
  end
end

handle['quote'] = function(state) state.text = state.text .. stream.QUOTE end
handle['endquote'] = function(state) state.text = state.text .. stream.UNQUOTE end

handle['index use'] = function(state, identifier) state.identifier = identifier end

handle['index defn'] = function(state, identifier)
  if state.part.kind == 'code' then table.insert(state.recent, identifier) end
end

-- Adds an element to a list once.
local function add(list, element)
  if not list[element] then
    list[element] = true
    table.insert(list, element)
  end
end

local function entry(entries, name)
  if not entries[name] then
    entries[name] = { name = name, definitions = {}, uses = {} }
    table.insert(entries, entries[name])
  end
  return entries[name]
end

local function collect_names(book)
  for _, chunk in ipairs(book.chunks) do
    local name = entry(book.names, chunk.name)
    add(name.definitions, chunk)
    chunk.part_of, chunk.position = name, #name.definitions
    chunk.indents = {}
    for _, line in ipairs(chunk.lines) do
      for index, piece in ipairs(line) do
        if piece.kind == 'use' then
          add(entry(book.names, piece.name).uses, chunk)
          if index > 1 and chunk.indents[piece.name] == nil then chunk.indents[piece.name] = true end
          if index == 1 then chunk.indents[piece.name] = false end
        end
      end
    end
  end
end

local function give_ids(book)
  local taken = {}
  for _, chunk in ipairs(book.chunks) do
    local base = 'chunk-' .. slug(chunk.name)
    if chunk.position > 1 then base = base .. '-' .. chunk.position end
    local id, copies = base, 1
    while taken[id] do
      copies = copies + 1
      id = base .. '-again-' .. copies
    end
    taken[id] = true
    chunk.id = id
  end
end

-- The files that a chunk name ends up in.
local function find_roots(book)
  local function roots_of(name, seen)
    if name.roots then return name.roots end
    if seen[name] then return {} end
    seen[name] = true
    local roots = {}
    if #name.uses == 0 then
      name.is_root = true
      add(roots, name.name)
    end
    for _, user in ipairs(name.uses) do
      for _, root in ipairs(roots_of(user.part_of, seen)) do add(roots, root) end
    end
    name.roots = roots
    return roots
  end
  for _, name in ipairs(book.names) do roots_of(name, {}) end
  for _, chunk in ipairs(book.chunks) do chunk.roots = chunk.part_of.roots end
end

-- A chunk that stands indented wherever it is used holds statements, or
-- the members of something. autodefs.c takes some statements that begin a
-- line for definitions; in such a chunk only "@ %def" counts.
local function find_inner(book)
  local function is_inner(name, seen)
    if name.inner == nil and not seen[name] then
      seen[name] = true
      local inner = #name.uses > 0
      for _, user in ipairs(name.uses) do
        inner = inner and (user.indents[name.name] or is_inner(user.part_of, seen))
      end
      name.inner = inner
    end
    return name.inner
  end
  for _, name in ipairs(book.names) do is_inner(name, {}) end
end

local function collect_definitions(book)
  for _, chunk in ipairs(book.chunks) do
    for _, identifier in ipairs(chunk.stated) do add(chunk.defines, identifier) end
    for _, identifier in ipairs(chunk.part_of.inner and {} or chunk.found) do add(chunk.defines, identifier) end
    for _, identifier in ipairs(chunk.defines) do
      add(entry(book.identifiers, identifier).definitions, chunk)
    end
  end
end

-- Follows C's comments and strings through a piece of code.
local OPENERS = { ['/*'] = '*/', ['//'] = '\n', ['"'] = '"', ["'"] = "'" }
local ENDS = { ['*/'] = '[*\\]', ['\n'] = '[\n\\]', ['"'] = '["\\]', ["'"] = "['\\]" }

local function next_state(inside, text)
  local at = 1
  while true do
    at = text:find(inside and ENDS[inside] or '[/"\']', at)
    if not at then return inside end
    local two, one = text:sub(at, at + 1), text:sub(at, at)
    if not inside then
      inside = OPENERS[two] or OPENERS[one]
      at = at + (OPENERS[two] and 2 or 1)
    elseif one == '\\' then
      at = at + 2
    elseif text:sub(at, at + #inside - 1) == inside then
      at, inside = at + #inside, nil
    else
      at = at + 1
    end
  end
end

-- Inside a comment an everyday word is not the identifier that happens to
-- be called so, and inside a string nothing is an identifier.
local function find_quiet(chunk)
  local inside
  for _, line in ipairs(chunk.lines) do
    for _, piece in ipairs(line) do
      if piece.kind == 'identifier' then
        local comment = inside == '*/' or inside == '\n'
        piece.quiet = inside ~= nil and not (comment and piece.text:match '[_%u]')
      end
      inside = next_state(inside, piece.text or '')
    end
    if inside ~= '*/' then inside = nil end
  end
end

-- C's own rule, as far as files go: what a header defines is known
-- everywhere, anything else only in the files it ends up in.
local function is_public(chunk)
  for _, root in ipairs(chunk.roots) do
    if root:match '%.h$' then return true end
  end
  return false
end

local function share_a_file(one, other)
  for _, root in ipairs(one.roots) do
    if other.roots[root] then return true end
  end
  return false
end

-- The chunk that defines an identifier as seen from another chunk: one of
-- the same file if there is one, else one that a header makes public.
function stream.definition(book, identifier, user)
  local found = book.identifiers[identifier]
  local public
  for _, definition in ipairs(found and found.definitions or {}) do
    if share_a_file(definition, user) then return definition end
    if not public and is_public(definition) then public = definition end
  end
  return public
end

-- The same as seen from the prose of a chapter.
function stream.definition_for_prose(book, identifier, chapter)
  local found = book.identifiers[identifier]
  local best, best_rank
  for _, definition in ipairs(found and found.definitions or {}) do
    local here = definition.chapter == chapter
    local rank = (is_public(definition) and 4 or 0) + (here and 2 or 0)
    if rank >= 2 and (not best or rank > best_rank) then best, best_rank = definition, rank end
  end
  return best
end

local function collect_uses(book)
  for _, chunk in ipairs(book.chunks) do
    find_quiet(chunk)
    for _, line in ipairs(chunk.lines) do
      for _, piece in ipairs(line) do
        if piece.kind == 'identifier' and not piece.quiet then
          piece.definition = stream.definition(book, piece.text, chunk)
          if piece.definition and not chunk.defines[piece.text] then
            add(entry(book.identifiers, piece.text).uses, chunk)
          end
        end
      end
    end
  end
end

-- The chunks that use an identifier which this chunk defines.
function stream.users(book, identifier, chunk)
  local users = {}
  for _, user in ipairs(book.identifiers[identifier].uses) do
    if stream.definition(book, identifier, user) == chunk then table.insert(users, user) end
  end
  return users
end

-- A copy of a list of things with names, in the order of the alphabet.
function stream.sorted(list)
  local copy = table.move(list, 1, #list, 1, {})
  table.sort(copy, function(a, b)
    local left, right = a.name:lower(), b.name:lower()
    if left == right then return a.name < b.name end
    return left < right
  end)
  return copy
end

function stream.parse(text)
  local book = { chapters = {}, chunks = {}, chunk = {}, names = {}, identifiers = {} }
  local state = { book = book, line = 1 }
  for line in text:gmatch '[^\n]+' do
    local keyword, argument = split_line(line)
    if handle[keyword] then handle[keyword](state, argument) end
  end
  collect_names(book)
  give_ids(book)
  find_roots(book)
  find_inner(book)
  collect_definitions(book)
  collect_uses(book)
  return book
end

function stream.read(path)
  local file = assert(io.open(path, 'r'))
  local text = file:read 'a'
  file:close()
  return stream.parse(text)
end

return stream
