-- The language server of flow for Neovim, 0.7 and later.
--
--     require("flow").setup()
--     require("flow").setup({ command = { "uv", "run", "qoqi" } })
--
-- starts `qoqi lsp` for the package a buffer is in. From 0.11 on that is the built-in
-- `vim.lsp.config`, so anything configured for "flow" there counts here, too.
--
-- `:FlowTest` runs the tests of a file, `:FlowTest!` the one the cursor is in; lenses do the same
-- through `vim.lsp.codelens.run()`. Other options: `init_options`; before 0.11 also `on_attach` and
-- `capabilities`.

local M = {}

local markers = { "flow.toml", "flow.lock", ".git" }

local function root_of(path)
  local folder = vim.fn.fnamemodify(path, ":p:h")
  for _, marker in ipairs(markers) do
    local found = vim.fn.findfile(marker, folder .. ";")
    if found == "" then
      found = vim.fn.finddir(marker, folder .. ";")
    end
    if found ~= "" then
      return (vim.fn.fnamemodify(found, ":p:h"):gsub("/%.git$", ""))
    end
  end
  return folder
end

-- Runs `qoqi` in a terminal below; a key closes it when it has ended.
local function in_terminal(arguments, folder)
  local command = vim.list_extend(vim.deepcopy(M.command), arguments)
  vim.cmd("botright new")
  if vim.fn.has("nvim-0.11") == 1 then
    vim.fn.jobstart(command, { cwd = folder, term = true })
  else
    vim.fn.termopen(command, { cwd = folder })
  end
  vim.cmd("normal! G")
end

--- Runs the tests of a file, or those with `title` in theirs: of what is on the screen.
function M.test(path, title)
  local buffer = vim.fn.bufnr(path)
  if buffer ~= -1 and vim.bo[buffer].modified then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd("silent write")
    end)
  end
  local arguments = { "test", path, "-v" }
  if title then
    vim.list_extend(arguments, { "-k", title })
  end
  in_terminal(arguments, root_of(path))
end

-- The title of the last test that begins before the end of the cursor's line.
local function title_above()
  for row = vim.fn.line("."), 1, -1 do
    local title = vim.fn.getline(row):match('^test%s+"(.*)"%s*{')
    if title then
      return (title:gsub("\\(.)", "%1"))
    end
  end
end

local function test_command(event)
  local title = nil
  if event.bang then
    title = title_above()
    if not title then
      vim.notify("flow: no test begins above", vim.log.levels.WARN)
      return
    end
  end
  M.test(vim.api.nvim_buf_get_name(0), title)
end

local lenses = {
  ["flow.runTests"] = function(command)
    M.test(command.arguments[1], command.arguments[2])
  end,
  ["flow.instances"] = function(command)
    in_terminal({ "ls", "--flow", command.arguments[1] }, root_of(vim.api.nvim_buf_get_name(0)))
  end,
}

local function prepare(buffer)
  vim.api.nvim_buf_create_user_command(buffer, "FlowTest", test_command, {
    bang = true,
    desc = "Run the tests of this file; with ! the one the cursor is in",
  })
  vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "BufWritePost" }, {
    group = vim.api.nvim_create_augroup("flow_lenses_" .. buffer, {}),
    buffer = buffer,
    callback = function()
      vim.lsp.codelens.refresh()
    end,
  })
end

function M.setup(options)
  options = options or {}
  M.command = options.command or { "qoqi" }
  local cmd = vim.list_extend(vim.deepcopy(M.command), { "lsp" })
  if vim.lsp.config then
    vim.lsp.config("flow", {
      cmd = cmd,
      filetypes = { "flow" },
      root_markers = markers,
      init_options = options.init_options,
      commands = lenses,
      on_attach = function(_, buffer)
        prepare(buffer)
        vim.lsp.codelens.refresh({ bufnr = buffer })
      end,
    })
    vim.lsp.enable("flow")
    return
  end
  vim.api.nvim_create_autocmd("FileType", {
    pattern = "flow",
    callback = function(event)
      local id = M.client
      if not id or vim.lsp.client_is_stopped(id) then
        id = vim.lsp.start_client({
          name = "flow",
          cmd = cmd,
          root_dir = root_of(event.file),
          init_options = options.init_options,
          commands = lenses,
          on_attach = function(client, buffer)
            prepare(buffer)
            vim.lsp.codelens.refresh()
            if options.on_attach then
              options.on_attach(client, buffer)
            end
          end,
          capabilities = options.capabilities,
        })
        M.client = id
      end
      vim.lsp.buf_attach_client(event.buf, id)
    end,
  })
end

return M
