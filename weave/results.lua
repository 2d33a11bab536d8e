-- What the chapters' programs printed in this build: tables, claims and
-- figures under build/out/PROGRAM/.

local problems = require 'problems'

local results = { directory = os.getenv 'WEAVE_OUT' or 'build/out' }

local function read_file(path)
  local file = io.open(path, 'r')
  if not file then return nil end
  local text = file:read 'a'
  file:close()
  return text
end
results.read_file = read_file

-- The programs of a book: every root chunk that a directory of results
-- exists for, with the chapter that shows it.
function results.find_programs(book)
  results.programs = {}
  for _, name in ipairs(book.names) do
    local program = name.is_root and name.name:match '^(.*)%.c$'
    if program and read_file(results.directory .. '/' .. program .. '/.done') then
      table.insert(results.programs, {
        name = program,
        chapter = name.definitions[1].chapter,
        directory = results.directory .. '/' .. program,
      })
    end
  end
end

-- The programs in the order in which a chapter asks them: its own first.
local function programs_for(chapter)
  local own, others = {}, {}
  for _, program in ipairs(results.programs) do
    table.insert(program.chapter.key == chapter.key and own or others, program)
  end
  for _, program in ipairs(others) do table.insert(own, program) end
  return own
end

-- "causal/weights" is section causal, table weights.
function results.split_target(target)
  local section, name = target:match '^([^/]+)/(.+)$'
  return section or target, name
end

local function stem(section, name) return name and section .. '.' .. name or section end

local function find_file(chapter, section, name, extension)
  for _, program in ipairs(programs_for(chapter)) do
    local path = program.directory .. '/' .. stem(section, name) .. extension
    local text = read_file(path)
    if text then return program, text, path end
  end
end

-- pandoc 2 has no function for this.
local function list_directory(directory)
  local names = {}
  local quoted = "'" .. directory:gsub("'", "'\\''") .. "'"
  local pipe = assert(io.popen('ls -- ' .. quoted))
  for name in pipe:lines() do table.insert(names, name) end
  pipe:close()
  return names
end

-- What there is to choose from, for a message: the names that end in an
-- extension, those of the wanted section if it has any, else of the
-- chapter's own program, else of all.
local function alternatives(chapter, section, extension)
  local near, own, all = {}, {}, {}
  for _, program in ipairs(programs_for(chapter)) do
    for _, file in ipairs(list_directory(program.directory)) do
      local base = #file > #extension and file:sub(-#extension) == extension and file:sub(1, -#extension - 1)
      if base and not (extension == '.tsv' and base:match '%.claims$') then
        local target = base:gsub('%.', '/', 1)
        if target == section or target:sub(1, #section + 1) == section .. '/' then
          table.insert(near, target)
        end
        if program.chapter.key == chapter.key then table.insert(own, target) end
        table.insert(all, target)
      end
    end
  end
  local list = #near > 0 and near or #own > 0 and own or all
  table.sort(list)
  return #list > 0 and 'there is ' .. table.concat(list, ', ') or 'no program of this build has any'
end

local function split(text, separator)
  local fields = {}
  for field in (text .. separator):gmatch('(.-)' .. separator) do table.insert(fields, field) end
  return fields
end

local tables = {}

-- A table of a section: program, section, name, header, rows. nil and a
-- message when there is none.
function results.find_table(chapter, target)
  local section, name = results.split_target(target)
  local program, text, path = find_file(chapter, section, name, '.tsv')
  if not program then
    return nil, 'no table ' .. target .. '; ' .. alternatives(chapter, section, '.tsv')
  end
  if tables[path] then return tables[path] end
  local lines = split(text:gsub('\r', ''):gsub('\n+$', ''), '\n')
  local found = {
    program = program, section = section, name = name, target = target,
    id = 'table-' .. stem(section, name):gsub('%.', '-'), header = split(lines[1], '\t'), rows = {},
  }
  for index = 2, #lines do
    local row = split(lines[index], '\t')
    while #row < #found.header do table.insert(row, '') end
    table.insert(found.rows, row)
  end
  tables[path] = found
  return found
end

function results.command(thing) return thing.program.name .. ' ' .. thing.section end

local function trim(text) return (text:gsub('^%s+', ''):gsub('%s+$', '')) end

local function quoted(list)
  local out = {}
  for index, element in ipairs(list) do out[index] = '"' .. trim(element) .. '"' end
  return table.concat(out, ', ')
end

local function find_row(found, label)
  local match
  for _, row in ipairs(found.rows) do
    if trim(row[1]) == label then
      if match then return nil, 'two rows of ' .. found.target .. ' are called "' .. label .. '"' end
      match = row
    end
  end
  if match then return match end
  local labels = {}
  for index, row in ipairs(found.rows) do labels[index] = row[1] end
  return nil, 'no row "' .. label .. '" in table ' .. found.target .. '; its rows are ' .. quoted(labels)
end

-- The text of one cell, from "SECTION/NAME[ROW, COLUMN]".
function results.find_cell(chapter, reference)
  local target, label, column = reference:match '^([^%[%]]+)%[([^,%[%]]+),([^,%[%]]+)%]$'
  if not target then
    return nil, 'a cell is written SECTION[ROW, COLUMN], not "' .. reference .. '"'
  end
  local found, problem = results.find_table(chapter, trim(target))
  if not found then return nil, problem end
  local row
  row, problem = find_row(found, trim(label))
  if not row then return nil, problem end
  for index, header in ipairs(found.header) do
    if trim(header) == trim(column) then return trim(row[index]), found end
  end
  return nil, 'no column "' .. trim(column) .. '" in table ' .. found.target ..
    '; its columns are ' .. quoted(found.header)
end

-- A figure: program, section, and the two files that gnuplot drew.
function results.find_figure(chapter, target)
  local section, name = results.split_target(target)
  local program, _, path = find_file(chapter, section, name, '.gp')
  if not program then
    return nil, 'no figure ' .. target .. '; ' .. alternatives(chapter, section, '.gp')
  end
  local base = path:sub(1, -4)
  return {
    program = program, section = section, name = name, target = target,
    id = 'figure-' .. stem(section, name):gsub('%.', '-'), svg = base .. '.svg', pdf = base .. '.pdf',
  }
end

local function claims_of(program, section)
  local text = read_file(program.directory .. '/' .. section .. '.claims.tsv')
  local claims = {}
  for line in (text or ''):gmatch '[^\n]+' do
    local name, holds, message = line:match '^([^\t]*)\t([^\t]*)\t(.*)$'
    if holds == 'true' or holds == 'false' then
      table.insert(claims, {
        program = program, section = section, name = name, target = section .. '/' .. name,
        holds = holds == 'true', message = message,
      })
    end
  end
  return claims
end

function results.find_claim(chapter, target)
  local section, name = results.split_target(target)
  for _, program in ipairs(programs_for(chapter)) do
    for _, claim in ipairs(claims_of(program, section)) do
      if claim.name == name then return claim end
    end
  end
  return nil, 'no program makes the claim ' .. target .. '; ' .. results.known_claims(chapter, section)
end

-- Every claim that a program made in this build.
function results.all_claims(program)
  local claims = {}
  for _, file in ipairs(list_directory(program.directory)) do
    local section = file:match '^(.*)%.claims%.tsv$'
    if section then
      for _, claim in ipairs(claims_of(program, section)) do table.insert(claims, claim) end
    end
  end
  table.sort(claims, function(a, b) return a.target < b.target end)
  return claims
end

function results.known_claims(chapter, section)
  local own, near = {}, {}
  for _, program in ipairs(programs_for(chapter)) do
    for _, claim in ipairs(results.all_claims(program)) do
      if claim.section == section then table.insert(near, claim.target) end
      if program.chapter.key == chapter.key then table.insert(own, claim.target) end
    end
  end
  local list = #near > 0 and near or own
  return #list > 0 and 'there is ' .. table.concat(list, ', ') or 'its program makes none'
end

-- The claim that a sentence makes; a problem unless it is there and true.
function results.checked_claim(facts, span)
  local claim, problem = results.find_claim(facts, span.attributes.claim)
  if claim and claim.holds then return claim end
  problem = problem or 'this is false: "' .. pandoc.utils.stringify(span.content) .. '"; ' ..
    results.command(claim) .. ' says: ' .. claim.message
  problems.report(facts.path, span.attributes.at, problem)
  return nil
end

-- ---- Numbers -------------------------------------------------------------

-- Takes "-1,234.50e-05%" apart: sign, digits, fraction with its point,
-- exponent, unit. nil for anything that is no number.
function results.number(text)
  local sign, digits, fraction, rest = text:match '^([-+]?)(%d[%d,]*)(%.?%d*)(.*)$'
  if not sign then
    sign, fraction, rest = text:match '^([-+]?)(%.%d+)(.*)$'
    digits = ''
  end
  if not sign then return nil end
  local exponent = rest:match '^[eE]([-+]?%d+)'
  if exponent then rest = rest:gsub('^[eE][-+]?%d+', '') end
  local unit = rest:match '^%s?[%%x×]$' or rest:match '^ ?[kMGT]?i?B$' or rest:match '^ ?[nµm]?s$'
  if rest ~= '' and not unit then return nil end
  if not (digits .. fraction):find '[1-9]' then exponent = nil end -- zero has no size
  return {
    sign = sign == '-' and '−' or sign, digits = digits, fraction = fraction,
    exponent = exponent and tostring(math.tointeger(tonumber(exponent))):gsub('^%-', '−') or nil,
    unit = rest,
  }
end

-- Blank cells and words for "no number" don't make a column one of text.
local function may_stand_among_numbers(text)
  return text == '' or text == '-' or text == '–' or text == '—' or text:lower():match '^[-+]?nan$' or text:lower():match '^[-+]?inf$'
end

-- What follows a number's point, as far as its width goes.
local function tail(number)
  local exponent = number.exponent and ' × 10' .. number.exponent or ''
  return number.fraction .. exponent .. number.unit
end

-- Says of each column whether it holds numbers, and gives the widest of
-- what follows their points when it differs from row to row: so much room
-- every cell needs for the points to stand below each other.
function results.columns(found)
  local columns = {}
  for index = 1, #found.header do
    local numbers, others, widest, differs = 0, 0, nil, false
    for _, row in ipairs(found.rows) do
      local cell = trim(row[index])
      local number = results.number(cell)
      if number then
        numbers = numbers + 1
        local length = utf8.len(tail(number))
        differs = differs or widest ~= nil and length ~= utf8.len(widest)
        if not widest or length > utf8.len(widest) then widest = tail(number) end
      elseif not may_stand_among_numbers(cell) then
        others = others + 1
      end
    end
    columns[index] = { numeric = numbers > 0 and others == 0, widest = differs and widest or nil }
  end
  return columns
end

results.trim = trim

-- A number as one of the two formats writes it, in two parts, of which the
-- first ends before the point.
function results.number_parts(number, write)
  local power = number.exponent and write.power_of_ten(number.exponent) or ''
  return number.sign .. number.digits, number.fraction .. power .. write.escape(number.unit)
end

function results.write_number(text, write)
  local number = results.number(text)
  if not number then return write.escape(text) end
  local before, after = results.number_parts(number, write)
  return before .. after
end

return results
