-- Finds what #name means: something of the chapter itself, or the one
-- thing in the other chapters that has this name.

local problems = require 'problems'

local links = {}

-- all: the facts of every chapter in order. Returns the facts of the
-- chapter that has the name.
function links.resolve(all, own, id, line)
  if own.ids[id] then return own end
  local found
  for _, facts in ipairs(all) do
    if facts.ids[id] then
      if found then
        problems.report(own.path, line, '#' .. id .. ' is in ' .. found.path .. ' and in ' ..
          facts.path .. '; give one of them a name of its own: {#name}')
        return nil
      end
      found = facts
    end
  end
  if not found then
    problems.report(own.path, line, 'nothing in the book is called #' .. id)
  end
  return found
end

-- The facts of the chapter that shows a table or figure: its own first.
function links.shown_in(all, own, id)
  if own.ids[id] then return own end
  for _, facts in ipairs(all) do
    if facts.ids[id] then return facts end
  end
end

-- The address of a name in a chapter, from the page of another.
function links.href(state, facts, id)
  local page = facts.key == state.facts.key and '' or facts.key .. '.html'
  local is_top = page ~= '' and facts.ids[id].kind == 'chapter'
  return is_top and page or page .. '#' .. id
end

-- "Day 4" stays on one line.
function links.keep_together(content)
  if not pandoc.utils.stringify(content):match '^%u%l+ %w%w?$' then return content end
  return content:map(function(inline)
    return (inline.t == 'Space' or inline.t == 'SoftBreak') and pandoc.Str '\u{a0}' or inline
  end)
end

return links
