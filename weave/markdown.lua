-- Turns the documentation of a chapter into Markdown that pandoc reads.
--
-- pandoc does not say where in its source an element stood, so everything
-- that can turn out wrong later gets an attribute here: at="123".

local stream = require 'stream'
local problems = require 'problems'

local markdown = {}

-- One chapter as lines of text, each with its number in the chapter. A
-- chunk becomes a fenced block that carries its label, so that notes and
-- links work across the chunks.
local function lines_of(chapter)
  local lines = {}
  local function put(text, number) table.insert(lines, { text = text, line = number }) end
  for _, part in ipairs(chapter.parts) do
    if part.kind == 'docs' then
      for _, line in ipairs(part.lines) do
        -- "@ %def" without names defines nothing.
        put(line.text:match '^%%def%s*$' and '' or line.text, line.line)
      end
    else
      put('', part.line)
      put('````````` {.chunk label="' .. part.label .. '"}', part.line)
      put('<<' .. part.name .. '>>', part.line)
      put('`````````', part.line)
      put('', part.line)
    end
  end
  return lines
end

local function restore_quotes(text)
  return (text:gsub(stream.QUOTE, '[['):gsub(stream.UNQUOTE, ']]'))
end

-- [[name]] becomes a span of code of a class of its own.
local function code_span(text, line)
  text = text:gsub('%s*\n%s*', ' ')
  local longest = 0
  for run in text:gmatch '`+' do longest = math.max(longest, #run) end
  local fence = ('`'):rep(longest + 1)
  local padding = (text:match '^`' or text:match '`$') and ' ' or ''
  return fence .. padding .. text .. padding .. fence .. '{.noweb at="' .. line .. '"}'
end

-- Each construct tries to match at a position; it returns what to write
-- and where to go on, or nothing.
local constructs = {}

constructs['\\'] = function(text, at)
  return text:sub(at, at + 1), at + 2
end

-- The end of the paragraph that a position stands in.
local function paragraph_end(text, at)
  return text:find('\n[ \t]*\n', at) or #text
end

constructs['`'] = function(text, at, line)
  local fence = text:match('^`+', at)
  local limit = paragraph_end(text, at)
  local from = at + #fence
  while true do
    local first, last = text:find('`+', from)
    if not first or first > limit then return fence, at + #fence end
    if last - first + 1 == #fence then
      local code = restore_quotes(text:sub(at, last))
      if text:match('^{[^}\n]*%.cell', last + 1) then
        return code .. '{at="' .. line .. '" ', last + 2
      end
      return code, last + 1
    end
    from = last + 1
  end
end

constructs['$'] = function(text, at)
  local limit = paragraph_end(text, at)
  if text:sub(at, at + 1) == '$$' then
    local _, last = text:find('$$', at + 2, true)
    if last then return restore_quotes(text:sub(at, last)), last + 1 end
    return nil
  end
  if text:match('^%$%s', at) then return nil end
  local from = at + 1
  while true do
    local last = text:find('$', from, true)
    if not last or last > limit then return nil end
    if text:sub(last - 1, last - 1):match '[^%s\\]' and not text:match('^%d', last + 1) then
      return restore_quotes(text:sub(at, last)), last + 1
    end
    from = last + 1
  end
end

constructs[stream.QUOTE] = function(text, at, line)
  local last = text:find(stream.UNQUOTE, at, true)
  local code = text:sub(at + 1, last - 1)
  if code == '' then return '\\[\\[\\]\\]', last + 1 end
  return code_span(code, line), last + 1
end

-- What follows the text of a link, an image or a span.
constructs[']'] = function(text, at, line)
  local target = text:match('^%]%(([^%s%)]+)%)', at)
  local mark = 'at="' .. line .. '"'
  if target and (target:match '^#' or target:match '^table:' or target:match '^figure:') then
    local after = at + #target + 3
    if text:sub(after, after) == '{' then
      return '](' .. target .. '){' .. mark .. ' ', after + 1
    end
    return '](' .. target .. '){' .. mark .. '}', after
  end
  if text:match('^%]{[^}]*claim%s*=', at) then
    return ']{' .. mark .. ' ', at + 2
  end
  return nil
end

constructs['@'] = function(text, at, line, chapter)
  local key = text:match('^@{?([%w_][%w_:.#$%%&%-+?<>~/]*)', at)
  if key and not text:sub(at - 1, at - 1):match '[%w.]' then
    key = key:gsub('[%p]+$', '')
    chapter.cited[key] = chapter.cited[key] or line
  end
  return nil
end

-- Divs must be closed in the chapter that opens them.
local function watch_fences(chapter, open, text, line)
  if text:match '^:::+%s*$' then
    if #open == 0 then
      problems.report(chapter.path, line, '":::" closes nothing')
    else
      table.remove(open)
    end
  elseif text:match '^:::+%s*[^%s:]' then
    table.insert(open, { line = line, text = text })
  end
end

-- The Markdown of a chapter. Also sets chapter.cited: the line of the
-- first citation of each key.
function markdown.of(chapter)
  chapter.cited = {}
  local lines = lines_of(chapter)
  local texts = {}
  for index, line in ipairs(lines) do texts[index] = line.text end
  local text = table.concat(texts, '\n') .. '\n'
  local out, open_divs = {}, {}
  local at, index, fence = 1, 1, nil
  local start_of_line = true

  local function advance(piece, next_at)
    table.insert(out, piece)
    local _, breaks = text:sub(at, next_at - 1):gsub('\n', '')
    index = index + breaks
    start_of_line = text:sub(next_at - 1, next_at - 1) == '\n'
    at = next_at
  end

  while at <= #text do
    local line = lines[math.min(index, #lines)]
    if start_of_line then
      start_of_line = false
      local mark = line.text:match '^%s*(```+)' or line.text:match '^%s*(~~~+)'
      local length = #line.text + 1
      if fence then
        local closes = mark and mark:sub(1, #fence) == fence and
          line.text:match('^%s*' .. mark .. '%s*$')
        if closes then fence = nil end
        advance(restore_quotes(line.text) .. '\n', at + length)
      elseif mark and not line.text:match('^%s*' .. mark .. '.*`') then
        fence = mark
        advance(restore_quotes(line.text) .. '\n', at + length)
      else
        watch_fences(chapter, open_divs, line.text, line.line)
      end
    else
      local stop = text:find('[\\`$%]@\n' .. stream.QUOTE .. ']', at)
      if stop and stop > at then advance(text:sub(at, stop - 1), stop) end
      local char = text:sub(at, at)
      local piece, next_at
      if constructs[char] then
        piece, next_at = constructs[char](text, at, line.line, chapter)
      end
      advance(piece or char, next_at or at + 1)
    end
  end
  for _, div in ipairs(open_divs) do
    problems.report(chapter.path, div.line, '"' .. div.text .. '" is never closed')
  end
  return table.concat(out)
end

return markdown
