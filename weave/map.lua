-- The map of the book: what the survey of all chapters found, kept as a
-- file of Lua that every page reads.

local map = {}

local function write_value(value, out, indent)
  if type(value) ~= 'table' then
    table.insert(out, string.format('%q', value))
    return
  end
  local keys = {}
  for key in pairs(value) do table.insert(keys, key) end
  table.sort(keys, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == 'number'
  end)
  table.insert(out, '{')
  for _, key in ipairs(keys) do
    table.insert(out, '\n' .. indent .. '[' .. string.format('%q', key) .. '] = ')
    write_value(value[key], out, indent .. ' ')
    table.insert(out, ',')
  end
  table.insert(out, '}')
end

function map.write(value)
  local out = { 'return ' }
  write_value(value, out, ' ')
  return table.concat(out)
end

function map.read(path) return dofile(path) end

return map
