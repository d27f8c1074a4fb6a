" Words, literals and comments of flow. What names are, the language server knows.
if exists("b:current_syntax")
  finish
endif

syntax keyword flowDeclare fn struct enum const flow step steps channel view run migrate test given
syntax keyword flowDeclare extern pub import native
syntax keyword flowKeep let var stage become
syntax keyword flowConditional if else match case wait
syntax keyword flowRepeat while for in not break continue
syntax keyword flowStatement return defer
syntax keyword flowClause within tries forever backoff to on limit per beat undo capacity answers
syntax keyword flowClause inside keep after at when then fails never runs as
syntax keyword flowBoolean true false
syntax match flowType "\<[A-Z][A-Za-z0-9_]*\>"
syntax match flowNumber "\<\d[0-9_]*\(\.\d\+\)\?\>"
syntax match flowDuration "\<\(\d\+\(ms\|s\|m\|h\|d\|w\)\)\+\>"
syntax match flowDate "@\d\{4}-\d\d-\d\d\(T[0-9:]\+\(Z\|[+-]\d\d:\d\d\)\?\)\?"
syntax match flowEscape contained "\\\([ntr\\\"]\|u{[0-9A-Fa-f]\+}\)"
syntax region flowHole contained matchgroup=flowDelimiter start="\\(" end=")" contains=TOP,flowParens
syntax region flowParens contained start="(" end=")" contains=TOP,flowParens
syntax region flowString start=+"+ end=+"+ contains=flowEscape,flowHole oneline
syntax region flowString start=+"""+ end=+"""+ contains=flowEscape,flowHole
syntax region flowString start=+#"+ end=+"#+
syntax match flowComment "//.*$" contains=@Spell
syntax match flowDoc "//[/!].*$" contains=@Spell

highlight default link flowDeclare Keyword
highlight default link flowKeep Keyword
highlight default link flowConditional Conditional
highlight default link flowRepeat Repeat
highlight default link flowStatement Statement
highlight default link flowClause Label
highlight default link flowBoolean Boolean
highlight default link flowType Type
highlight default link flowNumber Number
highlight default link flowDuration Number
highlight default link flowDate Number
highlight default link flowString String
highlight default link flowEscape SpecialChar
highlight default link flowDelimiter Delimiter
highlight default link flowComment Comment
highlight default link flowDoc SpecialComment

let b:current_syntax = "flow"
