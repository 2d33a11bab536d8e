-- Highlights a chunk with pandoc's own highlighter.
--
-- References to chunks and identifiers go through it as words of their own
-- that no program contains; afterwards each is replaced by its link.

local code = {}

local LANGUAGES = {
  c = 'c', h = 'c', lua = 'lua', py = 'python', sh = 'bash', mk = 'makefile', css = 'css', tex = 'latex',
}

local function language_of(chunk)
  local extension = (chunk.roots[1] or ''):match '%.(%a+)$'
  return LANGUAGES[extension] or 'c'
end

-- A word for each reference: weaveA, weaveB, … as letters only.
local function word(index)
  local letters = ''
  repeat
    letters = string.char(65 + index % 26) .. letters
    index = index // 26
  until index == 0
  return 'Weave' .. letters .. 'evaeW'
end
local WORD = 'Weave%u+evaeW'

-- The chunk's text with words for its references, and what they stand for.
local function with_words(chunk)
  local lines, meaning, count = {}, {}, 0
  for index, line in ipairs(chunk.lines) do
    local text = {}
    for _, piece in ipairs(line) do
      if piece.kind == 'use' or piece.kind == 'identifier' and piece.definition then
        local mark = word(count)
        count = count + 1
        meaning[mark] = piece
        table.insert(text, mark)
      else
        table.insert(text, piece.text)
      end
    end
    lines[index] = table.concat(text)
  end
  return lines, meaning
end

local function highlight(lines, language, format)
  local block = pandoc.CodeBlock(table.concat(lines, '\n'), pandoc.Attr('', { language }))
  return pandoc.write(pandoc.Pandoc { block }, format)
end

local function html_lines(text)
  local inner = text:match '<code[^>]*>(.*)</code>'
  local lines = {}
  for line in (inner .. '\n'):gmatch '(.-)\n' do
    line = line:gsub('^<span id="cb%d+%-%d+"><a [^>]*></a>(.*)</span>$', '%1')
    table.insert(lines, line)
  end
  return lines
end

local function latex_lines(text)
  local inner = text:match '\\begin{Highlighting}%[%]\n(.*)\n\\end{Highlighting}'
    or text:match '\\begin{verbatim}\n(.*)\n\\end{verbatim}'
  local lines = {}
  for line in (inner .. '\n'):gmatch '(.-)\n' do table.insert(lines, line) end
  return lines
end

local function put_links(line, meaning, render)
  local out, from = {}, 1
  while true do
    local first, last = line:find(WORD, from)
    if not first then break end
    table.insert(out, line:sub(from, first - 1))
    table.insert(out, render(meaning[line:sub(first, last)]))
    from = last + 1
  end
  table.insert(out, line:sub(from))
  return table.concat(out)
end

-- The lines of a chunk in a format; render(piece) gives the text of a
-- reference.
function code.lines(chunk, format, render)
  local texts, meaning = with_words(chunk)
  local text = highlight(texts, language_of(chunk), format)
  local lines = format == 'html' and html_lines(text) or latex_lines(text)
  for index, line in ipairs(lines) do
    lines[index] = put_links(line, meaning, render)
  end
  return lines
end

return code
