-- Small pieces of HTML.

local html_text = {}

local ESCAPES = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }
function html_text.escape(text) return (text:gsub('[&<>"]', ESCAPES)) end

function html_text.power_of_ten(exponent) return ' × 10<sup>' .. exponent .. '</sup>' end

function html_text.raw(text) return pandoc.RawInline('html', text) end
function html_text.raw_block(text) return pandoc.RawBlock('html', text) end

-- What pandoc makes of inlines.
function html_text.inlines(inlines)
  local doc = pandoc.Pandoc { pandoc.Plain(inlines) }
  return (pandoc.write(doc, 'html', { html_math_method = 'mathml' }):gsub('%s+$', ''))
end

return html_text
