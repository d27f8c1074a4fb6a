-- Drives a real Neovim: open a file, see the diagnostic, apply the fix, complete, rename, format,
-- run tests.
--
--     QOQI="path/to/python -m qoqi.runtime.cli.main" nvim --headless --clean -u NONE -l test.lua
--
-- (0.7: `-S test.lua`.) Prints `ok NAME` for each part, and ends with 0 if all went well.

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
vim.opt.runtimepath:prepend(here)
vim.opt.swapfile = false
vim.cmd("filetype plugin on")
vim.cmd("source " .. here .. "/ftdetect/flow.lua")

local folder = vim.fn.tempname()
vim.fn.mkdir(folder, "p")
local path = folder .. "/shop.flow"
vim.fn.writefile({ 'name = "shop"' }, folder .. "/flow.toml")
vim.fn.writefile({
  "/// An order: 😀.",
  "struct Order { id: String, cents: Int }",
  "",
  "fn total(order: Order) -> Int {",
  '    print("😀 \\(ordr.cents)")',
  "    return   order.cents",
  "}",
  "",
  'test "an order has a total" {',
  '    assert(total(Order { id: "a", cents: 5 }) == 5)',
  "}",
  "",
  'test "nothing costs \\"nothing\\"" {',
  '    assert(total(Order { id: "b", cents: 0 }) == 1)',
  "}",
}, path)

require("flow").setup({ command = vim.split(vim.env.QOQI or "qoqi", " ") })

local function fail(text)
  io.stderr:write("FAILED: " .. text .. "\n")
  io.stderr:write(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n")
  vim.cmd("cquit 1")
end

local function wait_for(what, check)
  if not vim.wait(20000, check, 20) then
    fail("no " .. what)
  end
  io.stdout:write("ok " .. what .. "\n")
end

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

local function params()
  local made = vim.lsp.util.make_position_params(0, vim.g.flow_encoding or "utf-16")
  return made
end

local function ask(method, what)
  local answers = vim.lsp.buf_request_sync(0, method, what, 20000)
  for _, answer in pairs(answers or {}) do
    if answer.err then
      fail(method .. ": " .. vim.inspect(answer.err))
    end
    return answer.result
  end
  fail("no answer to " .. method)
end

local function client()
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return get({ name = "flow" })[1] or get()[1]
end

vim.cmd("edit " .. path)
wait_for("client", function()
  return client() ~= nil and client().server_capabilities ~= nil
end)
wait_for("diagnostic", function()
  local found = vim.diagnostic.get(0)
  return #found == 1 and found[1].code == "E0201" and found[1].lnum == 4
end)
local encoding = client().offset_encoding or "utf-16"
vim.g.flow_encoding = encoding

local found = vim.diagnostic.get(0)[1]
if lines()[5]:sub(found.col + 1, found.end_col) ~= "ordr" then
  fail("the diagnostic is at " .. lines()[5]:sub(found.col + 1, found.end_col))
end
vim.api.nvim_win_set_cursor(0, { 5, found.col })
local at = params()
local actions = ask("textDocument/codeAction", {
  textDocument = at.textDocument,
  range = { start = at.position, ["end"] = at.position },
  context = { diagnostics = {}, only = { "quickfix" } },
})
vim.lsp.util.apply_workspace_edit(actions[1].edit, encoding)
wait_for("fix", function()
  return lines()[5] == '    print("😀 \\(order.cents)")'
end)
wait_for("no diagnostic after the fix", function()
  return #vim.diagnostic.get(0) == 0
end)

vim.api.nvim_buf_set_lines(0, 5, 5, false, { "    print(order.)" })
vim.api.nvim_win_set_cursor(0, { 6, 16 })
local offered = ask("textDocument/completion", params())
local names = {}
for _, item in ipairs(offered.items or offered) do
  names[item.label] = true
end
if not (names["cents"] and names["id"]) then
  fail("completion offers " .. vim.inspect(vim.tbl_keys(names)))
end
io.stdout:write("ok completion\n")
vim.api.nvim_buf_set_lines(0, 5, 6, false, {})

vim.api.nvim_win_set_cursor(0, { 4, 10 })
local rename = params()
rename.newName = "purchase"
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", rename), encoding)
wait_for("rename", function()
  return lines()[4] == "fn total(purchase: Order) -> Int {"
    and lines()[6] == "    return   purchase.cents"
end)

local edits = ask("textDocument/formatting", {
  textDocument = params().textDocument,
  options = { tabSize = 4, insertSpaces = true },
})
vim.lsp.util.apply_text_edits(edits, vim.api.nvim_get_current_buf(), encoding)
wait_for("format", function()
  return lines()[6] == "    return purchase.cents"
end)

local hover = ask("textDocument/hover", params())
if not hover.contents.value:find("purchase", 1, true) then
  fail("hover shows " .. hover.contents.value)
end
io.stdout:write("ok hover\n")

-- What a terminal that a command opens says in the end; its window is closed again.
local function said(what, start, wanted)
  local before = vim.api.nvim_get_current_buf()
  start()
  if not vim.wait(20000, function()
    return vim.api.nvim_get_current_buf() ~= before
  end, 20) then
    fail("no terminal for " .. what)
  end
  wait_for(what, function()
    return table.concat(lines(), "\n"):find(wanted, 1, true) ~= nil
  end)
  vim.cmd("bwipeout!")
end

said("tests of a file", function()
  vim.cmd("FlowTest")
end, "1 passed, 1 failed")
vim.api.nvim_win_set_cursor(0, { 14, 10 })
said("test at the cursor", function()
  vim.cmd("FlowTest!")
end, "0 passed, 1 failed")
if #vim.fn.filter(vim.fn.readfile(path), "v:val =~ 'purchase'") == 0 then
  fail("the tests ran on what was on the disk")
end

vim.lsp.codelens.refresh()
wait_for("lenses", function()
  return #vim.lsp.codelens.get(vim.api.nvim_get_current_buf()) == 3
end)
vim.api.nvim_win_set_cursor(0, { 13, 0 })
said("test of a lens", vim.lsp.codelens.run, "0 passed, 1 failed")
vim.cmd("qall!")
