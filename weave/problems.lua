-- Collects what is wrong with the chapters, so that one run tells all of it.

local problems = { list = {} }

function problems.report(path, line, message)
  local place = path .. ':' .. tostring(line or 1)
  local text = place .. ': ' .. message
  if not problems.list[text] then
    problems.list[text] = true
    table.insert(problems.list, { path = path, line = tonumber(line) or 1, text = text })
  end
end

-- Ends pandoc before it writes anything.
function problems.stop_if_any()
  if #problems.list == 0 then return end
  table.sort(problems.list, function(a, b)
    if a.path ~= b.path then return a.path < b.path end
    if a.line ~= b.line then return a.line < b.line end
    return a.text < b.text
  end)
  for _, problem in ipairs(problems.list) do io.stderr:write(problem.text, '\n') end
  os.exit(1)
end

return problems
