-- A pandoc reader for the stream of noweb's filters.
--
--   WEAVE=04-masks pandoc -f weave/noweb.lua build/book.stream …
--
-- WEAVE says what to read: the key of a chapter, "book" for all of them
-- between the front and the back matter, or the name of a page without a
-- chapter. book.md gives the book's metadata and its front matter.

local here = (PANDOC_SCRIPT_FILE or 'weave/noweb.lua'):match '^(.*)/[^/]*$' or '.'
package.path = here .. '/?.lua;' .. package.path

local stream = require 'stream'
local markdown = require 'markdown'
local problems = require 'problems'

-- Images keep to what weave.lua makes of them; raw HTML and TeX would show
-- in one of the two books only.
local CHAPTER_FORMAT = 'markdown-implicit_figures-raw_html-raw_tex' ..
  '-yaml_metadata_block-pandoc_title_block-markdown_in_html_blocks'
local FRONT_FORMAT = 'markdown-implicit_figures-raw_html-raw_tex'

local function read_front()
  local path = os.getenv 'WEAVE_FRONT' or 'book.md'
  local file = io.open(path, 'r')
  if not file then return pandoc.Pandoc({}) end
  local text = file:read 'a'
  file:close()
  -- The front matter knows [[code]] and links as the chapters do.
  local yaml, body = text:match '^(%-%-%-\n.-\n%-%-%-\n)(.*)$'
  if not yaml then yaml, body = '', text end
  local _, skipped = yaml:gsub('\n', '')
  local part, number = { kind = 'docs', lines = {} }, skipped
  for line in (body .. '\n'):gmatch '([^\n]*)\n' do
    number = number + 1
    line = line:gsub('%[%[(.-)%]%]', stream.QUOTE .. '%1' .. stream.UNQUOTE)
    table.insert(part.lines, { text = line, line = number })
  end
  local front = { path = path, key = 'book', parts = { part } }
  return pandoc.read(yaml .. markdown.of(front), FRONT_FORMAT)
end

-- A chapter starts with its title.
local function check_title(chapter, blocks)
  local first = blocks[1]
  if not first or first.t ~= 'Header' or first.level ~= 1 then
    problems.report(chapter.path, 1, 'a chapter starts with its title: # Title {#name}')
  end
end

local function read_chapter(chapter)
  local blocks = pandoc.read(markdown.of(chapter), CHAPTER_FORMAT).blocks
  check_title(chapter, blocks)
  return blocks
end

local function chapter_div(chapter)
  return pandoc.Div(read_chapter(chapter), pandoc.Attr('', { 'chapter' }, { key = chapter.key }))
end

function Reader(input)
  local what = os.getenv 'WEAVE' or 'book'
  local book = stream.parse(tostring(input))
  local front = read_front()
  local blocks = pandoc.List()
  if what == 'index' then
    blocks = front.blocks
  elseif what == 'book' then
    blocks:insert(pandoc.Div(front.blocks, pandoc.Attr('', { 'front' })))
    for _, chapter in ipairs(book.chapters) do blocks:insert(chapter_div(chapter)) end
  elseif book.chapters[what] then
    blocks:insert(chapter_div(book.chapters[what]))
  end
  problems.stop_if_any()
  return pandoc.Pandoc(blocks, front.meta)
end
