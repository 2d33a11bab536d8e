-- Tables, figures, numbers and claims as HTML.

local links = require 'links'
local problems = require 'problems'
local results = require 'results'
local write = require 'html_text'

local escape, raw, raw_block = write.escape, write.raw, write.raw_block
local html_results = {}

-- A row's label of so many bytes is not broken in a narrow window.
local SHORT = 18

local function table_cell(text, column, tag)
  text = results.trim(text)
  local number = column.numeric and results.number(text)
  local class = column.numeric and ' class="numeral"' or tag ~= 'td' and #text <= SHORT and ' class="short"' or ''
  local content = number and results.write_number(text, write) or escape(text)
  if number and column.widest then
    local before, after = results.number_parts(number, write)
    content = before .. '<span class="tail" data-widest="' .. escape(column.widest) .. '"><span>' .. after .. '</span></span>'
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

-- The few colours of a plot become variables of the style sheet, which
-- has lighter ones for the dark; a heat map keeps its many.
local FEW_COLOURS = 8

local function name_colours(svg)
  local pattern, seen, count = 'rgb%(%s*(%d+),%s*(%d+),%s*(%d+)%)', {}, 0
  local function hex(red, green, blue) return string.format('%02x%02x%02x', red, green, blue) end
  for red, green, blue in svg:gmatch(pattern) do
    local colour = hex(red, green, blue)
    if not seen[colour] then count = count + 1 end
    seen[colour] = true
  end
  if count > FEW_COLOURS then return svg end
  return (svg:gsub(pattern, function(...) return 'var(--series-' .. hex(...) .. ', #' .. hex(...) .. ')' end))
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
  svg = name_colours(svg):gsub('%s+font%-family="[^"]*"', '')
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

local function show_cell(state, element)
  local text, found = results.find_cell(state.facts, element.text)
  if not text then
    problems.report(state.facts.path, element.attributes.at, found)
    return raw ''
  end
  local facts = links.shown_in(state.map.chapters, state.facts, found.id)
  local number = results.write_number(text, write)
  if not facts then
    return raw('<span class="cell" title="' .. escape(results.command(found)) .. '">' .. number .. '</span>')
  end
  return raw('<a class="cell" href="' .. links.href(state, facts, found.id) .. '">' .. number .. '</a>')
end

local function show_claim(state, span)
  local claim = results.checked_claim(state.facts, span)
  if not claim then return {} end
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

html_results.table, html_results.figure, html_results.cell = show_table, show_figure, show_cell
html_results.claim, html_results.checked = show_claim, checked_html

return html_results
