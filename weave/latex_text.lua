-- Small pieces of LaTeX.

local latex_text = {}

local ESCAPES = {
  ['\\'] = '\\textbackslash{}', ['{'] = '\\{', ['}'] = '\\}', ['_'] = '\\_', ['#'] = '\\#', ['&'] = '\\&',
  ['%'] = '\\%', ['$'] = '\\$', ['^'] = '\\textasciicircum{}', ['~'] = '\\textasciitilde{}',
  ['<'] = '\\textless{}', ['>'] = '\\textgreater{}', ["'"] = '\\textquotesingle{}', ['-'] = '{-}', ['`'] = '\\textasciigrave{}',
}

function latex_text.power_of_ten(exponent) return '\\,×\\,10\\textsuperscript{' .. exponent .. '}' end

function latex_text.raw(text) return pandoc.RawInline('latex', text) end
function latex_text.raw_block(text) return pandoc.RawBlock('latex', text) end

-- The text face has the letters of Europe and a printer's marks; every
-- other sign comes from the mathematical face.
local PRINTERS_MARKS = '‐‑–—‘’‚“”„†‡•…‰‹›⁄€™−'
local function is_in_text_face(codepoint)
  return codepoint < 0x180 or PRINTERS_MARKS:find(utf8.char(codepoint), 1, true) ~= nil
end

local function with_symbols(text, macro, is_known)
  return (text:gsub('[\xC2-\xF4][\x80-\xBF]+', function(sign)
    if is_known(utf8.codepoint(sign)) then return nil end
    return macro .. '{' .. sign .. '}'
  end))
end

local function symbols_in_text(text) return with_symbols(text, '\\textsymbol', is_in_text_face) end
local function symbols_in_code(text)
  return with_symbols(text, '\\codesymbol', function(codepoint) return codepoint < 0x100 end)
end

local function escape_code(text)
  return symbols_in_code((text:gsub('[\\{}_#&%%$^~<>\'`-]', ESCAPES)))
end

local function escape(text)
  text = text:gsub('[\\{}_#&%%$^~]', ESCAPES)
  return symbols_in_text(text)
end

-- Long names may break after an underscore.
local function breakable(text)
  return (text:gsub('\\_(%w)', '\\_\\allowbreak{}%1'):gsub('([/,])(%S)', '%1\\allowbreak{}%2'))
end

local function inline_code(text) return '\\texttt{' .. breakable(escape_code(text)) .. '}' end

latex_text.escape, latex_text.escape_code, latex_text.breakable = escape, escape_code, breakable
latex_text.code, latex_text.symbols_in_text, latex_text.symbols_in_code = inline_code, symbols_in_text, symbols_in_code

return latex_text
