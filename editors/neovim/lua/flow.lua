-- The language server of flow for Neovim, 0.7 and later.
--
--     require("flow").setup()
--     require("flow").setup({ cmd = { "uv", "run", "qoqi", "lsp" } })
--
-- starts `qoqi lsp` for the package a buffer is in. From 0.11 on that is the built-in
-- `vim.lsp.config`, so anything configured for "flow" there counts here, too.

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
      return vim.fn.fnamemodify(found, ":p:h"):gsub("/%.git$", "")
    end
  end
  return folder
end

local function run_tests(command)
  local path = command.arguments and command.arguments[1]
  if path then
    vim.cmd("botright split | terminal qoqi test " .. vim.fn.shellescape(path))
  end
end

function M.setup(options)
  options = options or {}
  local cmd = options.cmd or { "qoqi", "lsp" }
  if vim.lsp.config then
    vim.lsp.config("flow", {
      cmd = cmd,
      filetypes = { "flow" },
      root_markers = markers,
      init_options = options.init_options,
      commands = { ["flow.runTests"] = run_tests },
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
          commands = { ["flow.runTests"] = run_tests },
          on_attach = options.on_attach,
          capabilities = options.capabilities,
        })
        M.client = id
      end
      vim.lsp.buf_attach_client(event.buf, id)
    end,
  })
end

return M
