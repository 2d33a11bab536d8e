-- Numbers a chapter: its sections, tables, figures, claims and index
-- entries, in the order in which they stand. The survey of the whole book
-- and each page do this alike, so that a page knows the others' numbers.

local results = require 'results'
local problems = require 'problems'

local structure = {}

local function special_target(image)
  return image.src:match '^(table):(.+)$' or image.src:match '^(figure):(.+)$'
end

-- A paragraph of one image only: kind, target and image.
local function lone_image(block)
  if #block.content ~= 1 or block.content[1].t ~= 'Image' then return nil end
  local image = block.content[1]
  if not special_target(image) then return nil end
  local kind, target = image.src:match '^(%a+):(.+)$'
  return kind, target, image
end

local function exhibit(facts, kind, target, image)
  local list = kind == 'table' and facts.tables or facts.figures
  local section, name = results.split_target(target)
  local id = kind .. '-' .. (name and section .. '-' .. name or section):gsub('%.', '-')
  local number = facts.number .. '.' .. #list + 1
  if facts.ids[id] then
    problems.report(facts.path, image.attributes.at, 'the ' .. kind .. ' ' .. target .. ' stands here a second time')
  end
  table.insert(list, { id = id, number = number, target = target })
  facts.ids[id] = { kind = kind, number = number }
  return pandoc.Div({ pandoc.Plain(image.caption) }, pandoc.Attr(id, { 'weave-' .. kind },
    { target = target, number = number, at = image.attributes.at }))
end

-- Where an index entry of a chapter leads: the section it stands in.
local function place(facts)
  local section = facts.sections[#facts.sections]
  return section and section.number or facts.label
end

local function on_header(facts, counts)
  return function(header)
    if header.level == 1 and facts.key ~= 'index' then
      if facts.title then
        problems.report(facts.path, 1, 'a second title: "' .. pandoc.utils.stringify(header.content) .. '"')
      end
      facts.title, facts.id = header.content, header.identifier
      facts.ids[header.identifier] = { kind = 'chapter', number = facts.number }
      return nil
    end
    local number
    if header.level == 2 and not header.classes:includes 'unnumbered' then
      counts.section = counts.section + 1
      number = facts.number .. '.' .. counts.section
      header.attributes.number = number
    end
    if header.level == 2 then
      table.insert(facts.sections, { id = header.identifier, number = number, title = header.content })
    end
    facts.ids[header.identifier] = { kind = 'section', number = number }
    return header
  end
end

local function on_paragraph(facts)
  return function(block)
    local kind, target, image = lone_image(block)
    if kind then return exhibit(facts, kind, target, image) end
  end
end

local function on_span(facts)
  return function(span)
    local claim = span.attributes.claim
    if claim then
      table.insert(facts.claims, { target = claim })
      span.identifier = 'claim-' .. #facts.claims
      return span
    end
    local is_entry = span.classes:includes 'index'
    if is_entry or span.attributes.index then
      local term = span.attributes.index or pandoc.utils.stringify(span.content)
      local id = 'index-' .. #facts.terms + 1
      table.insert(facts.terms, { term = term, id = id, place = place(facts) })
      return pandoc.Span(span.content, pandoc.Attr(id, { 'index-entry' }, { term = term }))
    end
  end
end

-- Numbers the blocks of a chapter; returns them and the chapter's facts.
function structure.number(blocks, chapter)
  local facts = {
    key = chapter.key, path = chapter.path, label = chapter.label, number = chapter.number,
    is_day = chapter.is_day, ids = {}, sections = {}, tables = {}, figures = {}, claims = {}, terms = {},
  }
  local numbered = pandoc.Pandoc(blocks):walk {
    traverse = 'topdown',
    Header = on_header(facts, { section = 0 }),
    Para = on_paragraph(facts),
    Plain = on_paragraph(facts),
    Span = on_span(facts),
    Image = function(image)
      local kind = special_target(image)
      if kind then
        problems.report(facts.path, image.attributes.at,
          'a ' .. kind .. ' stands alone in its paragraph, with an empty line before and after')
      end
    end,
  }
  return numbered.blocks, facts
end

return structure
