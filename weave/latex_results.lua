-- Tables, figures, numbers and claims as LaTeX.

local links = require 'links'
local problems = require 'problems'
local results = require 'results'
local write = require 'latex_text'

local raw, raw_block, escape, escape_code = write.raw, write.raw_block, write.escape, write.escape_code
local latex_results = {}

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
        if number then before, after = results.number_parts(number, write) end
        table.insert(cells, before .. ' & ' .. after)
      else
        table.insert(cells, number and results.write_number(text, write) or escape(text))
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
  local facts = links.shown_in(state.map.chapters, state.facts, found.id)
  if not facts then return raw(results.write_number(text, write)) end
  return raw('\\weavecell{' .. facts.key .. ':' .. found.id .. '}{' .. results.write_number(text, write) .. '}')
end

local function show_claim(state, span)
  local claim = results.checked_claim(state.facts, span)
  if not claim then return {} end
  local content = pandoc.List(span.content)
  local macro = span.attributes.inner and '\\weavechecked' or '\\weaveclaim'
  content:insert(raw(macro .. '{' .. escape(claim.message) .. '}'))
  return pandoc.Span(content)
end

latex_results.table, latex_results.figure, latex_results.cell = show_table, show_figure, show_cell
latex_results.claim = show_claim

return latex_results
